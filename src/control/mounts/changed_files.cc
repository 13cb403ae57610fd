// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/changed_files.h"

#include <cerrno>
#include <sys/stat.h>

#include "base/text.h"
#include "control/transfer/key_stream.h"

namespace overcap {
namespace {

tl::unexpected<Error> ReadOnly() {
  return Fail(ErrorCode::kInternal, "the changed files of a copy cannot be written to");
}

// The text up to the next NUL, which is taken off.
std::optional<std::string_view> TakeField(std::string_view* text) {
  const size_t end = text->find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view field = text->substr(0, end);
  text->remove_prefix(end + 1);
  return field;
}

bool TakeNumber(std::string_view* text, int64_t* number) {
  const auto field = TakeField(text);
  const auto parsed = field ? ParseInt(*field) : std::nullopt;
  if (parsed) *number = *parsed;
  return parsed.has_value();
}

}  // namespace

std::string StampsToText(const CopyStamps& stamps) {
  std::string text;
  for (const auto& [key, stamp] : stamps)
    text += StrCat(key, '\0', stamp.size, '\0', stamp.modified_ns, '\0', stamp.inode, '\0');
  return text;
}

Result<CopyStamps> StampsFromText(std::string_view text) {
  CopyStamps stamps;
  while (!text.empty()) {
    const auto key = TakeField(&text);
    CopyStamp stamp;
    if (!key || !TakeNumber(&text, &stamp.size) || !TakeNumber(&text, &stamp.modified_ns) ||
        !TakeNumber(&text, &stamp.inode))
      return Fail(ErrorCode::kCorrupt, "the list of downloaded files is damaged");
    stamps[std::string(*key)] = stamp;
  }
  return stamps;
}

Result<CopyStamps> StampsOf(const Store& copy, const std::string& path) {
  CopyStamps stamps;
  KeyStream keys(copy);
  for (;;) {
    OC_TRY(object, keys.Peek());
    if (object == nullptr) return stamps;
    const std::string file = StrCat(path, "/", object->key);
    struct stat info {};
    if (stat(file.c_str(), &info) == 0) {
      stamps[object->key] = {info.st_size, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
                             static_cast<int64_t>(info.st_ino)};
    } else if (errno != ENOENT) {
      return Fail(ErrnoError(errno, StrCat("cannot look at '", ToUtf8(file), "'")));
    }
    keys.Pop();
  }
}

CopyStamps ChangedSince(const CopyStamps& had, const CopyStamps& now) {
  CopyStamps changed;
  for (const auto& [key, stamp] : now) {
    const auto before = had.find(key);
    if (before == had.end() || !(before->second == stamp)) changed[key] = stamp;
  }
  return changed;
}

Result<void> OnlyKeys::Put(const std::string&, std::span<const std::string_view>, PutMode) {
  return ReadOnly();
}
Result<void> OnlyKeys::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                 std::string* out) const {
  return store_.GetIntoIf(object, offset, limit, out);
}
Result<StoredObjectInfo> OnlyKeys::Stat(const std::string& key) const {
  return store_.Stat(key);
}
Result<StorePage> OnlyKeys::List(const std::string& prefix, const std::string& next) const {
  OC_TRY(page, store_.List(prefix, next));
  std::erase_if(page.objects, [this](const StoredObjectInfo& object) { return !keys_.contains(object.key); });
  return page;
}
Result<void> OnlyKeys::Remove(const std::string&) {
  return ReadOnly();
}
Result<int64_t> OnlyKeys::CleanUp(int64_t) {
  return ReadOnly();
}

}  // namespace overcap
