// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_store.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/digests.h"
#include "stores/azblob/azure_upload.h"
#include "stores/object_requests.h"
#include "stores/paged_listing.h"

namespace overcap {
namespace {

constexpr size_t kLongestBlobName = 1024;
constexpr int64_t kLargestPut = 1024ll * 1024 * 1024;
constexpr int64_t kLargestChecked = 256ll * 1024 * 1024;  // read whole and compared with its MD5
constexpr int64_t kLargestProven = 4ll * 1024 * 1024;     // Azure's limit of a range with an MD5
constexpr size_t kMostMarkers = 1000;
const PosixClock kClock;

// What the service would take for another name: it drops dots at the end and reads '\\' as '/'.
bool CanBeBlob(std::string_view whole) {
  return whole.size() <= kLongestBlobName && IsUtf8(whole) && !whole.ends_with('.') &&
         whole.find('\\') == std::string_view::npos;
}

// The rest of its rules: no part ends with '.', and what XML cannot hold would spoil listings of all others.
bool CanBeNewBlob(std::string_view whole) {
  const bool control =
      std::any_of(whole.begin(), whole.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const bool no_character = whole.find("\xef\xbf\xbe") != std::string_view::npos ||
                            whole.find("\xef\xbf\xbf") != std::string_view::npos;
  return !control && !no_character && whole.find("./") == std::string_view::npos;
}

tl::unexpected<Error> NoBlob(std::string_view key) {
  return Fail(ErrorCode::kUsage, StrCat(Quoted(key), " cannot be the name of a blob"),
              "with the store's prefix a name has 1024 bytes at most, in UTF-8, without '\\' and control "
              "characters, and no part of it ends with '.'");
}

}  // namespace

Result<std::unique_ptr<AzureStore>> AzureStore::Open(const AzureAccess& access, const std::string& prefix,
                                                     const AzureStoreOptions& options) {
  OC_TRY(service, AzureService::Open(access, kClock, options.tuning));
  return std::unique_ptr<AzureStore>(new AzureStore(std::move(service), prefix, options));
}

Result<std::string> AzureStore::WholeKey(const std::string& key) const {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  std::string whole = StrCat(container_.prefix(), key);
  if (CanBeBlob(whole)) return whole;
  return NoBlob(key);
}

Result<std::string> AzureStore::NewKey(const std::string& key) const {
  OC_TRY(whole, WholeKey(key));
  if (CanBeNewBlob(whole)) return whole;
  return NoBlob(key);
}

Result<void> AzureStore::Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) {
  OC_TRY(whole, NewKey(key));
  const int64_t size = SizeOfPieces(pieces);
  return size > kLargestPut ? PutInParts(whole, pieces, size, mode) : PutWhole(whole, pieces, mode);
}

Result<void> AzureStore::PutWhole(const std::string& whole, std::span<const std::string_view> pieces,
                                  PutMode mode) {
  const std::string mark = NewPutMark();
  AzureCall call;
  call.method = "PUT";
  call.blob = whole;
  call.body = pieces;
  call.has_body = true;
  call.headers = {{"content-type", "application/octet-stream"},
                  {"content-md5", Base64Of(Md5OfPieces(pieces))},
                  {"x-ms-blob-type", "BlockBlob"},
                  {"x-ms-meta-overcap_put", mark}};
  if (mode == PutMode::kCreate) call.headers.push_back({"if-none-match", "*"});
  std::string body;
  OC_TRY(answer, container_.service().Call(call, &body));
  if (!answer.problem) return {};
  if (mode == PutMode::kCreate && IsConflict(*answer.problem)) return container_.SettleConflict(whole, mark);
  return Fail(container_.ErrorOf(*answer.problem, whole, "write"));
}

Result<void> AzureStore::PutInParts(const std::string& whole, std::span<const std::string_view> pieces,
                                    int64_t size, PutMode mode) {
  const int64_t part = AzurePartSize(size, 64 * 1024 * 1024);
  OC_TRY(upload, AzureUpload::Begin(container_, {whole, size, part, mode, ""}));
  for (int64_t i = 0; i < PartCount(size, part); ++i) {
    const auto slice = SliceOfPieces(pieces, i * part, part);
    OC_TRY_VOID(upload->PartOfPieces(i, slice));
  }
  return upload->Finish();
}

Result<void> AzureStore::Read(const std::string& whole, const std::string& version, int64_t offset,
                              int64_t limit, std::string* out, bool prove) const {
  AzureCall call;
  call.blob = whole;
  const bool all = offset == 0 && limit == kAll;
  if (prove) call.headers.push_back({"x-ms-range-get-content-md5", "true"});
  if (!all) call.headers.push_back({"x-ms-range", ByteRange(offset, limit)});
  if (!version.empty()) call.headers.push_back({"if-match", StrCat("\"", version, "\"")});
  OC_TRY(answer, container_.service().Call(call, out, static_cast<size_t>(std::max<int64_t>(limit, 1))));
  if (answer.problem) {
    // A condition on a blob that is not there is not met either.
    if (answer.problem->status == 412) OC_TRY_VOID(container_.Head(whole));
    if (answer.problem->status != 416) return Fail(container_.ErrorOf(*answer.problem, whole, "read"));
    out->clear();
    return {};
  }
  if (limit == 0) out->clear();
  const bool is_range = answer.head.status == 206;
  if (!all && offset > 0 && !is_range)
    return Fail(ErrorCode::kUnavailable,
                StrCat("the service of '", Location(), "' does not give parts of blobs"));
  if (is_range && !answer.head.Find("content-range").starts_with(StrCat("bytes ", offset, "-")))
    return Fail(ErrorCode::kUnavailable,
                StrCat("the service of '", Location(), "' gave another part than was asked for"));
  const std::string_view bytes = *out, md5 = answer.head.Find("content-md5");
  const bool comparable = prove || (all && !is_range && !md5.empty());
  if (comparable && static_cast<int64_t>(bytes.size()) <= kLargestChecked &&
      Base64Of(Md5OfPieces(std::span(&bytes, 1))) != md5)
    return Fail(ErrorCode::kCorrupt,
                StrCat(Quoted(whole.substr(container_.prefix().size()), 200), " in store ",
                       Quoted(Location(), 500), " is not what was written there"));
  return {};
}

Result<void> AzureStore::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                   std::string* out) const {
  OC_TRY(whole, WholeKey(object.key));
  OC_TRY_VOID(ValidRange(object.key, offset, limit));
  if (object.check_ranges) return ReadProven(whole, object.version, offset, limit, out);
  return Read(whole, object.version, offset, limit, out);
}

Result<void> AzureStore::ReadProven(const std::string& whole, const std::string& version, int64_t offset,
                                    int64_t limit, std::string* out) const {
  out->clear();
  std::string range;
  for (int64_t left = limit; left > 0;) {
    const int64_t wanted = std::min(left, kLargestProven);
    Result<void> read = Read(whole, version, offset, wanted, &range, true);
    if (!read && read.error().code == ErrorCode::kCorrupt)  // it may have been the way
      read = Read(whole, version, offset, wanted, &range, true);
    if (!read) return read;
    out->append(range);
    if (static_cast<int64_t>(range.size()) < wanted) break;
    offset += wanted;
    left -= wanted;
  }
  return {};
}

Result<StoredChecksum> AzureStore::ChecksumOf(const StoredObjectInfo& object) const {
  if (!object.md5.empty()) return StoredChecksum{.md5 = object.md5};
  if (object.size <= kLargestProven) return StoredChecksum{.by_ranges = true};
  OC_TRY(whole, WholeKey(object.key));
  OC_TRY(head, container_.Head(whole));
  StoredChecksum told{.md5 = head.info.md5, .md5_of_parts = head.md5_of_parts};
  if (!told.md5_of_parts.empty()) told.part_sizes = {head.part_size};
  told.sure = !told.md5_of_parts.empty();
  told.by_ranges = told.md5.empty() && !told.sure;
  return told;
}

Result<StoredObjectInfo> AzureStore::Stat(const std::string& key) const {
  OC_TRY(whole, WholeKey(key));
  OC_TRY(head, container_.Head(whole));
  head.info.key = key;
  return head.info;
}

std::string AzureStore::MarkerAfter(const std::string& prefix, const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = markers_.find(StrCat(prefix, "\n", key));
  return found == markers_.end() ? "" : found->second;
}

void AzureStore::KeepMarker(const std::string& prefix, const std::string& key,
                            const std::string& marker) const {
  const std::lock_guard lock(mutex_);
  if (markers_.size() >= kMostMarkers) markers_.clear();
  markers_[StrCat(prefix, "\n", key)] = marker;
}

Result<StorePage> AzureStore::List(const std::string& prefix, const std::string& next) const {
  OC_TRY_VOID(ValidListing(prefix, next, options_.keys));
  std::string marker = next.empty() ? "" : MarkerAfter(prefix, next);
  const bool from_start = marker.empty();
  StorePage page;
  while (true) {
    OC_TRY(listed, container_.List(StrCat(container_.prefix(), prefix), marker));
    for (StoredObjectInfo& object : listed.objects) {
      if (object.key.size() < container_.prefix().size()) continue;
      object.key.erase(0, container_.prefix().size());
      if (from_start && !next.empty() && object.key <= next) continue;
      if (!IsKey(object.key, options_.keys)) {
        ++page.left_out;
      } else {
        page.objects.push_back(std::move(object));
      }
    }
    if (listed.marker.empty()) {
      SortPage(&page);
      return page;
    }
    if (listed.marker == marker)
      return Fail(ErrorCode::kCorrupt, StrCat("the service's list does not go on ('", Location(), "')"));
    marker = listed.marker;
    if (!page.objects.empty()) break;
  }
  page.next = page.objects.back().key;
  KeepMarker(prefix, page.next, marker);
  SortPage(&page);
  return page;
}

Result<void> AzureStore::Remove(const std::string& key) {
  OC_TRY(whole, WholeKey(key));
  AzureCall call;
  call.method = "DELETE";
  call.blob = whole;
  call.headers = {{"x-ms-delete-snapshots", "include"}};
  std::string body;
  OC_TRY(answer, container_.service().Call(call, &body));
  if (answer.problem && answer.problem->code != "BlobNotFound")
    return Fail(container_.ErrorOf(*answer.problem, whole, "remove"));
  return {};
}

Result<void> AzureStore::Takes(const std::string& key) const {
  OC_TRY_VOID(NewKey(key));
  return {};
}

Result<int64_t> AzureStore::CleanUp(int64_t) {
  return 0;
}

Result<std::unique_ptr<StoreUpload>> AzureStore::StartUpload(const std::string& key, int64_t size,
                                                             PutMode mode) {
  return ResumeUpload(key, size, mode, "", 0);
}

Result<std::unique_ptr<StoreUpload>> AzureStore::ResumeUpload(const std::string& key, int64_t size,
                                                              PutMode mode, const std::string& identity,
                                                              int64_t part_size) {
  OC_TRY(whole, NewKey(key));
  const int64_t usual = part_size > 0 ? part_size : options_.part_size;
  if (size <= usual) return Store::StartUpload(key, size, mode);
  const int64_t part = AzurePartSize(size, usual);
  OC_TRY(upload, AzureUpload::Begin(container_, {whole, size, part, mode, identity}));
  return std::unique_ptr<StoreUpload>(std::move(upload));
}

Result<std::string> AzureStore::UrlOf(const std::string& key, int64_t seconds) const {
  OC_TRY(whole, WholeKey(key));
  if (seconds < 1) return Fail(ErrorCode::kUsage, "a URL is good for 1 second at least");
  return container_.service().Presigned(whole, seconds);
}

Result<void> AzureStore::MakeContainer() {
  AzureCall call;
  call.method = "PUT";
  call.query = {{"restype", "container"}};
  call.has_body = true;
  std::string body;
  OC_TRY(answer, container_.service().Call(call, &body));
  if (!answer.problem || answer.problem->code == "ContainerAlreadyExists") return {};
  return Fail(container_.ErrorOf(*answer.problem, "", "make"));
}

}  // namespace overcap
