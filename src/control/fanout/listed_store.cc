// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/listed_store.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/url.h"
#include "stores/object_requests.h"

namespace overcap {
namespace {

constexpr int64_t kUrlUs = 5 * 60'000'000ll;  // for so long one is used again
constexpr size_t kUrlsKept = 1000;
constexpr int64_t kPageMost = 64 << 10;

// An answer that is not the service's: a login page.
bool IsForeign(const HttpResponse& head) {
  return head.Find("content-type").starts_with("text/html") && head.Find("etag").empty();
}

}  // namespace

ListedStore::ListedStore(std::vector<StoredObjectInfo> objects, AskUrl ask, Settings settings)
    : ask_(std::move(ask)), settings_(std::move(settings)) {
  for (StoredObjectInfo& object : objects) {
    std::string key = object.key;
    objects_.insert_or_assign(std::move(key), std::move(object));
  }
}

Result<void> ListedStore::Put(const std::string&, std::span<const std::string_view>, PutMode) {
  return Fail(ErrorCode::kDenied, StrCat(Quoted(Location(), 300), " can only be read here"));
}

Result<void> ListedStore::Remove(const std::string&) {
  return Fail(ErrorCode::kDenied, StrCat(Quoted(Location(), 300), " can only be read here"));
}

Result<StoredObjectInfo> ListedStore::Stat(const std::string& key) const {
  const auto found = objects_.find(key);
  if (found == objects_.end())
    return Fail(ErrorCode::kNotFound,
                StrCat("there is no ", Quoted(key, 200), " in ", Quoted(Location(), 300)));
  StoredObjectInfo info = found->second;
  const std::lock_guard lock(mutex_);
  if (no_md5_.contains(key)) info.md5.clear();
  return info;
}

Result<StorePage> ListedStore::List(const std::string& prefix, const std::string&) const {
  StorePage page;
  for (auto at = objects_.lower_bound(prefix); at != objects_.end() && at->first.starts_with(prefix); ++at)
    page.objects.push_back(at->second);
  return page;
}

Result<ListedStore::KnownUrl> ListedStore::UrlFor(const std::string& key, bool anew) const {
  if (!anew) {
    const std::lock_guard lock(mutex_);
    const auto known = urls_.find(key);
    if (known != urls_.end() && clock_.MonotonicUs() - known->second.since_us < kUrlUs) return known->second;
  }
  KnownUrl url;
  OC_TRY(text, ask_(key));
  url.text = std::move(text);
  url.since_us = clock_.MonotonicUs();
  const std::lock_guard lock(mutex_);
  if (urls_.size() >= kUrlsKept) urls_.clear();
  urls_.insert_or_assign(key, url);
  return url;
}

Result<ServiceLink*> ListedStore::LinkTo(const std::string& text, std::string* target) const {
  OC_TRY(url, ParseUrl(text));
  *target = url.query.empty() ? url.path : StrCat(url.path, "?", url.query);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ServiceLink>& link = links_[url.origin.Text()];
  if (!link) {
    OC_TRY(opened, ServiceLink::Open(url.origin, settings_.ca_file, clock_, settings_.tuning));
    link = std::move(opened);
  }
  return link.get();
}

Result<HttpResponse> ListedStore::Ask(const std::string& url, const StoredObjectInfo& object, int64_t offset,
                                      int64_t limit, std::string* out) const {
  HttpRequest request;
  OC_TRY(link, LinkTo(url, &request.target));
  const bool all = offset == 0 && limit >= object.size;
  if (!all) request.headers.push_back({"range", ByteRange(offset, limit)});
  if (!object.version.empty()) request.headers.push_back({"if-match", StrCat("\"", object.version, "\"")});
  const auto judge = [](const HttpResponse& head) -> std::optional<ServiceRefusal> {
    const bool foreign = IsForeign(head);
    if (head.status < 300 && !foreign) return std::nullopt;
    return ServiceRefusal{.foreign = foreign, .passing = IsPassing(head.status)};
  };
  const int64_t most = std::min(limit, object.size - offset);
  // Somebody else's page may be longer.
  const auto room = static_cast<size_t>(std::max(most, kPageMost));
  OC_TRY(head, link->Send([&](int64_t) { return request; }, judge, out, room));
  const bool whole = head.status == 200 && offset == 0;
  const bool part =
      head.status == 206 && head.Find("content-range").starts_with(StrCat("bytes ", offset, "-"));
  const bool fits = (whole || part) && static_cast<int64_t>(out->size()) <= most;
  if (head.status < 300 && (IsForeign(head) || !fits))
    return Fail(ErrorCode::kUnavailable, StrCat(Quoted(link->origin().Text(), 300), " does not answer as ",
                                                Quoted(Location(), 300), " does"));
  return head;
}

// Where a service encrypts with keys of its own, its ETags are no MD5; it tells with the object.
void ListedStore::NoteEncryption(const std::string& key, const HttpResponse& head) const {
  if (head.Find("x-amz-server-side-encryption") != "aws:kms") return;
  const std::lock_guard lock(mutex_);
  no_md5_.insert(key);
}

tl::unexpected<Error> ListedStore::Refused(const StoredObjectInfo& object, int status) const {
  const std::string what = StrCat(Quoted(object.key, 200), " in ", Quoted(Location(), 300));
  if (status == 404 || status == 412)
    return Fail(ErrorCode::kConflict, StrCat(what, " changed while it was read"), "run it again");
  const ErrorCode code = status == 401 || status == 403 ? ErrorCode::kDenied : ErrorCode::kUnavailable;
  return Fail(code, StrCat("cannot read ", what, ": the service answers ", status));
}

Result<void> ListedStore::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                    std::string* out) const {
  OC_TRY_VOID(ValidRange(object.key, offset, limit));
  if (limit == 0 || offset >= object.size) {
    out->clear();
    return {};
  }
  for (bool again = false;; again = true) {
    OC_TRY(url, UrlFor(object.key, again));
    OC_TRY(head, Ask(url.text, object, offset, limit, out));
    if (head.status < 300) {
      NoteEncryption(object.key, head);
      return {};
    }
    // It may have become too old on its way.
    if (again || (head.status != 401 && head.status != 403)) return Refused(object, head.status);
  }
}

}  // namespace overcap
