// SPDX-License-Identifier: Apache-2.0
#include "stores/mem/mem_store.h"

#include <algorithm>

#include "base/text.h"
#include "stores/gather_upload.h"
#include "sys/clock.h"

namespace overcap {
namespace {

constexpr size_t kPageSize = 4096;

struct NamedContents {
  std::mutex mutex;  // guards `contents`
  std::map<std::string, std::shared_ptr<MemStore::Content>> contents;
};

NamedContents& AllNamed() {
  static auto* all = new NamedContents;
  return *all;
}

tl::unexpected<Error> Missing(const std::string& key, const std::string& location) {
  return Fail(ErrorCode::kNotFound, StrCat("there is no ", Quoted(key, 200), " in '", location, "'"));
}

StoredObjectInfo InfoOf(const std::string& key, const MemStore::Content::Object& object) {
  return {key, static_cast<int64_t>(object.bytes->size()), object.modified_us, std::to_string(object.number)};
}

}  // namespace

MemStore::MemStore(std::string name, std::shared_ptr<Content> content, KeyRule keys)
    : name_(std::move(name)), content_(std::move(content)), keys_(keys) {}

Result<std::unique_ptr<MemStore>> MemStore::Named(const std::string& name, bool create, KeyRule keys) {
  NamedContents& all = AllNamed();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<Content>& content = all.contents[name];
  if (!content && !create) {
    all.contents.erase(name);
    return Fail(ErrorCode::kNotFound, StrCat("there is no store 'mem:", name, "' in this process"));
  }
  if (!content) content = std::make_shared<Content>();
  return std::make_unique<MemStore>(name, content, keys);
}

Result<void> MemStore::Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) {
  OC_TRY_VOID(ValidKey(key, keys_));
  auto bytes = std::make_shared<std::string>();
  for (const std::string_view piece : pieces) bytes->append(piece);
  const std::lock_guard lock(content_->mutex);
  const bool there = content_->objects.contains(key);
  if (there && mode == PutMode::kCreate)
    return Fail(ErrorCode::kConflict,
                StrCat("there is a ", Quoted(key, 200), " in '", Location(), "' already"));
  content_->objects[key] = {std::move(bytes), PosixClock().WallUs(), ++content_->puts};
  return {};
}

Result<MemStore::Content::Object> MemStore::Find(const std::string& key) const {
  OC_TRY_VOID(ValidKey(key, keys_));
  const std::lock_guard lock(content_->mutex);
  const auto found = content_->objects.find(key);
  if (found == content_->objects.end()) return Missing(key, Location());
  return found->second;
}

Result<void> MemStore::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                 std::string* out) const {
  OC_TRY_VOID(ValidRange(object.key, offset, limit));
  OC_TRY(found, Find(object.key));
  if (!object.version.empty() && object.version != std::to_string(found.number))
    return Fail(ErrorCode::kConflict,
                StrCat(Quoted(object.key, 200), " in '", Location(), "' changed while it was read"));
  const size_t begin = std::min<size_t>(found.bytes->size(), static_cast<size_t>(offset));
  *out = found.bytes->substr(begin, static_cast<size_t>(limit));
  return {};
}

Result<StoredObjectInfo> MemStore::Stat(const std::string& key) const {
  OC_TRY(found, Find(key));
  return InfoOf(key, found);
}

Result<StorePage> MemStore::List(const std::string& prefix, const std::string& next) const {
  OC_TRY_VOID(ValidListing(prefix, next, keys_));
  StorePage page;
  const std::lock_guard lock(content_->mutex);
  auto at = next > prefix ? content_->objects.upper_bound(next) : content_->objects.lower_bound(prefix);
  for (; at != content_->objects.end() && at->first.starts_with(prefix); ++at) {
    if (!IsKey(at->first, keys_)) {
      ++page.left_out;
      continue;
    }
    if (page.objects.size() == kPageSize) {
      page.next = page.objects.back().key;
      break;
    }
    page.objects.push_back(InfoOf(at->first, at->second));
  }
  return page;
}

Result<void> MemStore::Remove(const std::string& key) {
  OC_TRY_VOID(ValidKey(key, keys_));
  const std::lock_guard lock(content_->mutex);
  content_->objects.erase(key);
  return {};
}

Result<std::unique_ptr<StoreUpload>> MemStore::StartUpload(const std::string& key, int64_t size,
                                                           PutMode mode) {
  OC_TRY_VOID(ValidKey(key, keys_));
  return GatherUpload(this, key, size, mode);
}

Result<int64_t> MemStore::CleanUp(int64_t) {
  return 0;
}

}  // namespace overcap
