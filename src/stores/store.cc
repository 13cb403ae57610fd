// SPDX-License-Identifier: Apache-2.0
#include "stores/store.h"

#include <algorithm>

#include "base/text.h"
#include "stores/gather_upload.h"
#include "stores/paged_listing.h"

namespace overcap {
namespace {

bool IsKeyByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool IsAnyPart(std::string_view part) {
  return part != "." && part != ".." && !part.starts_with(kTemporaryBegin) &&
         !part.starts_with(kPartialBegin) && part.find('\0') == std::string_view::npos;
}

std::string_view RuleInWords(KeyRule rule) {
  return rule == KeyRule::kPlain
             ? "names are parts of letters, digits, '.', '_' and '-' with '/' between them; no part begins "
               "with '.'"
             : "names are parts of 1 to 255 bytes with '/' between them, none of them '.' or '..'";
}

}  // namespace

bool IsKeyPart(std::string_view part, KeyRule rule) {
  if (part.empty() || part.size() > kLongestKeyPart) return false;
  if (rule == KeyRule::kAny) return IsAnyPart(part);
  return part[0] != '.' && std::all_of(part.begin(), part.end(), IsKeyByte);
}

bool IsKey(std::string_view key, KeyRule rule) {
  if (rule == KeyRule::kService) return key.size() <= kLongestAnyKey && !key.starts_with(kTemporaryBegin);
  if (key.size() > (rule == KeyRule::kAny ? kLongestAnyKey : kLongestKey)) return false;
  for (size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/')) {
    if (!IsKeyPart(key.substr(0, slash), rule)) return false;
    key.remove_prefix(slash + 1);
  }
  return IsKeyPart(key, rule);
}

Result<void> ValidKey(std::string_view key, KeyRule rule) {
  if (IsKey(key, rule)) return {};
  return Fail(ErrorCode::kUsage, StrCat(Quoted(key), " cannot be the name of a stored object"),
              std::string(RuleInWords(rule)));
}

Result<void> ValidListing(std::string_view prefix, std::string_view next, KeyRule rule) {
  const bool open = prefix.empty() || prefix.back() == '/';
  const bool begins = prefix.empty() || rule == KeyRule::kService ||
                      IsKey(open ? prefix.substr(0, prefix.size() - 1) : prefix, rule);
  if (!begins)
    return Fail(ErrorCode::kUsage, StrCat("no stored object has a name that begins with ", Quoted(prefix)));
  if (!next.empty() && !IsKey(next, rule))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(next), " is not where a list of stored objects goes on"));
  return {};
}

Result<void> ValidRange(std::string_view key, int64_t offset, int64_t limit) {
  if (offset >= 0 && limit >= 0) return {};
  return Fail(ErrorCode::kUsage, StrCat("cannot read ", limit, " bytes at ", offset, " of ", Quoted(key)));
}

Result<void> Store::Takes(const std::string& key) const {
  return ValidKey(key, KeyRule::kAny);
}

Result<void> Store::GetInto(const std::string& key, int64_t offset, int64_t limit, std::string* out) const {
  return GetIntoIf({key}, offset, limit, out);
}

Result<std::string> Store::Get(const std::string& key, int64_t offset, int64_t limit) const {
  std::string bytes;
  OC_TRY_VOID(GetInto(key, offset, limit, &bytes));
  return bytes;
}

int64_t PartCount(int64_t size, int64_t part_size) {
  return size / part_size + (size % part_size != 0 ? 1 : 0);
}

Result<void> ValidPart(std::string_view key, int64_t size, int64_t part_size, int64_t index, size_t bytes) {
  const bool is_one = index >= 0 && index < PartCount(size, part_size);
  if (is_one && static_cast<int64_t>(bytes) == std::min(part_size, size - index * part_size)) return {};
  return Fail(ErrorCode::kUsage, StrCat(bytes, " bytes are not part ", index, " of ", Quoted(key, 200),
                                        ", which has ", size, " in parts of ", part_size));
}

Result<void> Store::SetModified(const std::string& key, int64_t) {
  return Fail(ErrorCode::kUsage,
              StrCat("the time of ", Quoted(key, 200), " in ", Quoted(Location(), 500), " cannot be set"));
}

Result<void> Store::CreateStrictly(const std::string& key, std::string_view bytes) {
  return Put(key, bytes, PutMode::kCreate);
}

Result<std::unique_ptr<StoreUpload>> Store::StartUpload(const std::string& key, int64_t size, PutMode mode) {
  return GatherUpload(this, key, size, mode);
}

Result<std::unique_ptr<StoreUpload>> Store::ResumeUpload(const std::string& key, int64_t size, PutMode mode,
                                                         const std::string&, int64_t) {
  return StartUpload(key, size, mode);
}

Result<StoredChecksum> Store::ChecksumOf(const StoredObjectInfo& object) const {
  return StoredChecksum{.md5 = object.md5};
}

Result<void> StoreUpload::ReadBack(int64_t, int64_t, std::string*) const {
  return Fail(ErrorCode::kUsage, "what was sent to this store cannot be read before it is complete");
}

Result<void> Store::Put(const std::string& key, std::string_view bytes, PutMode mode) {
  return Put(key, std::span<const std::string_view>(&bytes, 1), mode);
}

Result<std::vector<StoredObjectInfo>> Store::ListAll(const std::string& prefix) const {
  OC_TRY(whole, PagedListing(*this, prefix).Whole());
  return std::move(whole.objects);
}

}  // namespace overcap
