// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_container.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/http_date.h"
#include "stores/object_requests.h"

namespace overcap {
namespace {

std::string LocationOf(const AzureAccess& access, const std::string& prefix) {
  return StrCat("az://", access.account, "/", access.container, prefix.empty() ? "" : "/", prefix);
}

}  // namespace

AzureContainer::AzureContainer(std::unique_ptr<AzureService> service, const std::string& prefix)
    : service_(std::move(service)),
      prefix_(prefix.empty() ? "" : StrCat(prefix, "/")),
      location_(LocationOf(service_->access(), prefix)) {}

Error AzureContainer::ErrorOf(const AzureProblem& problem, const std::string& blob,
                              std::string_view verb) const {
  AzureSubject subject;
  subject.location = location_;
  subject.account = service_->access().account;
  subject.container = service_->access().container;
  subject.endpoint = service_->EndpointText();
  subject.key = blob.starts_with(prefix_) ? blob.substr(prefix_.size()) : blob;
  subject.verb = verb;
  subject.by_sas = service_->access().key.empty();
  subject.sas_expired = service_->SasExpired();
  return AzureErrorOf(problem, subject);
}

Result<AzureAnswer> AzureContainer::Must(const AzureCall& call, std::string_view verb, std::string* body,
                                         size_t most) const {
  OC_TRY(answer, service_->Call(call, body, most));
  if (answer.problem) return Fail(ErrorOf(*answer.problem, call.blob, verb));
  return answer;
}

Result<AzureBlobHead> AzureContainer::Head(const std::string& blob) const {
  AzureCall call;
  call.method = "HEAD";
  call.blob = blob;
  std::string body;
  OC_TRY(answer, Must(call, "read", &body));
  const auto size = ParseInt(answer.head.Find("content-length"));
  if (!size)
    return Fail(ErrorCode::kUnavailable, StrCat("the service does not tell the size of ", Quoted(blob, 200),
                                                " in store ", Quoted(location_, 500)));
  AzureBlobHead head;
  head.info.key = blob;
  head.info.size = *size;
  head.info.modified_us = ParseHttpDate(answer.head.Find("last-modified")).value_or(0);
  head.info.version = WithoutQuotes(answer.head.Find("etag"));
  head.info.md5 = Md5OfBase64(answer.head.Find("content-md5"));
  head.put_mark = answer.head.Find("x-ms-meta-overcap_put");
  const std::string_view parts = answer.head.Find("x-ms-meta-overcap_parts");
  const size_t dash = std::min(parts.find('-'), parts.size());
  const auto part_size = ParseInt(parts.substr(std::min(dash + 1, parts.size())));
  if (dash == 32 && part_size && *part_size > 0) {
    head.md5_of_parts = parts.substr(0, dash);
    head.part_size = *part_size;
  }
  return head;
}

Result<AzureListPage> AzureContainer::List(const std::string& prefix, const std::string& marker) const {
  AzureCall call;
  call.query = {{"restype", "container"},
                {"comp", "list"},
                {"maxresults", std::to_string(service_->tuning().page_size)}};
  if (!prefix.empty()) call.query.emplace_back("prefix", prefix);
  if (!marker.empty()) call.query.emplace_back("marker", marker);
  std::string body;
  OC_TRY_VOID(Must(call, "list", &body));
  auto page = ParseAzureList(body);
  if (!page)
    return Fail(page.error().code, StrCat(page.error().message, " ('", service_->EndpointText(), "')"));
  return page;
}

Result<void> AzureContainer::SettleConflict(const std::string& blob, const std::string& mark) const {
  const auto head = Head(blob);
  if (head && head->put_mark == mark) return {};
  return Fail(ErrorCode::kConflict, StrCat(Quoted(blob.substr(prefix_.size()), 200), " is already in store ",
                                           Quoted(location_, 500)));
}

bool IsConflict(const AzureProblem& problem) {
  return problem.code == "BlobAlreadyExists" || problem.code == "ConditionNotMet" ||
         problem.code == "UnauthorizedBlobOverwrite" || (problem.status == 412 && problem.code.empty());
}

}  // namespace overcap
