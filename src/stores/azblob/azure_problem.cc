// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_problem.h"

#include "base/text.h"
#include "net/http/retry_policy.h"
#include "stores/object_requests.h"
#include "stores/xml_tree.h"

namespace overcap {
namespace {

bool OneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view each : words)
    if (word == each) return true;
  return false;
}

std::string Target(const AzureSubject& subject) {
  if (subject.key.empty()) return Quoted(subject.location, 500);
  return StrCat(Quoted(subject.key, 200), " in store ", Quoted(subject.location, 500));
}

std::string Theirs(const AzureProblem& problem) {
  return problem.code.empty() ? StrCat("status ", problem.status) : problem.code;
}

Error Denied(const AzureProblem& problem, const AzureSubject& subject) {
  if (subject.sas_expired)
    return {ErrorCode::kDenied,
            StrCat("the shared access signature for '", subject.location, "' has expired"),
            "get a new one (sas_token)"};
  // An account's key permits all; what Azure still refuses comes from a network that the account does not let
  // in.
  if (!subject.by_sas)
    return {ErrorCode::kDenied, StrCat("the account key for '", subject.location, "' is not the right one"),
            problem.code == "AuthorizationFailure"
                ? "look at account_key, and whether the account lets this machine's network in"
                : "look at account_key: it must be that of this account"};
  if (problem.code == "AuthenticationFailed" || problem.status == 401)
    return {ErrorCode::kDenied,
            StrCat("the shared access signature for '", subject.location, "' is not the right one"),
            "look at sas_token: it must be whole, and for this account and container"};
  return {ErrorCode::kDenied, StrCat("not allowed to ", subject.verb, " ", Target(subject)),
          "the shared access signature does not permit it: get one that does"};
}

}  // namespace

AzureProblem ReadAzureProblem(const HttpResponse& head, std::string_view body) {
  AzureProblem problem;
  problem.status = head.status;
  problem.code = PlainWord(head.Find("x-ms-error-code"));
  const auto xml = ParseXml(body);
  if (xml && xml->name == "Error") {
    if (problem.code.empty()) problem.code = PlainWord(xml->TextOf("Code"));
    problem.message = xml->TextOf("Message");
  }
  problem.foreign = problem.code.empty() && !body.empty();
  return problem;
}

bool IsPassing(const AzureProblem& problem) {
  return IsPassing(problem.status) ||
         OneOf(problem.code, {"ServerBusy", "InternalError", "OperationTimedOut", "ContainerBeingDeleted"});
}

Error AzureErrorOf(const AzureProblem& problem, const AzureSubject& subject) {
  const std::string_view code = problem.code;
  if (OneOf(code, {"ContainerNotFound", "ContainerBeingDeleted"}))
    return {ErrorCode::kNotFound,
            StrCat("there is no container '", subject.container, "' in account '", subject.account, "'"),
            StrCat("look at its name; to make it: az storage container create --account-name ",
                   subject.account, " --name ", subject.container)};
  if (problem.foreign && !IsPassing(problem))
    return {ErrorCode::kUnavailable,
            StrCat("'", subject.endpoint, "' does not answer as Azure Blob Storage does (status ",
                   problem.status, ")"),
            "look at the endpoint of this store"};
  if (problem.status == 404) return {ErrorCode::kNotFound, StrCat("there is no ", Target(subject)), ""};
  if (problem.status == 401 || problem.status == 403) return Denied(problem, subject);
  if (OneOf(code, {"LeaseIdMissing", "LeaseIdMismatchWithBlobOperation", "LeaseLost"}))
    return {ErrorCode::kConflict, StrCat(Target(subject), " is leased: somebody holds a lock on it"), ""};
  if (code == "InvalidBlockList")
    return {ErrorCode::kConflict, StrCat(Target(subject), " was written by somebody else meanwhile"),
            "try again"};
  if (IsPassing(problem))
    return {ErrorCode::kUnavailable,
            StrCat("the service of '", subject.location, "' is not able to ", subject.verb,
                   " now: ", Theirs(problem)),
            "try again later"};
  if (problem.status == 409 || problem.status == 412)
    return {ErrorCode::kConflict,
            StrCat(Target(subject), " is not as it was thought to be: ", Theirs(problem)), ""};
  if (OneOf(code, {"Md5Mismatch"}))
    return {ErrorCode::kUnavailable, StrCat("what arrived of ", Target(subject), " was not what was sent"),
            "try again"};
  const bool ours = problem.status < 500 && problem.status != 413;
  return {ours ? ErrorCode::kUsage : ErrorCode::kUnavailable,
          StrCat("the service does not ", subject.verb, " ", Target(subject), ": ", Theirs(problem),
                 problem.message.empty() ? "" : ", ",
                 problem.message.empty() ? "" : Quoted(problem.message, 200)),
          ""};
}

}  // namespace overcap
