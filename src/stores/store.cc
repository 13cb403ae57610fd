// SPDX-License-Identifier: Apache-2.0
#include "stores/store.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

bool IsKeyByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool IsKey(std::string_view key) {
  if (key.size() > kLongestKey) return false;
  for (size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/')) {
    if (!IsKeyPart(key.substr(0, slash))) return false;
    key.remove_prefix(slash + 1);
  }
  return IsKeyPart(key);
}

}  // namespace

bool IsKeyPart(std::string_view part) {
  return !part.empty() && part.size() <= kLongestKeyPart && part[0] != '.' &&
         std::all_of(part.begin(), part.end(), IsKeyByte);
}

Result<void> ValidKey(std::string_view key) {
  if (IsKey(key)) return {};
  return Fail(
      ErrorCode::kUsage, StrCat(Quoted(key), " cannot be the name of a stored object"),
      "names are parts of letters, digits, '.', '_' and '-' with '/' between them; no part begins with '.'");
}

Result<void> ValidListing(std::string_view prefix, std::string_view next) {
  const bool open = prefix.empty() || prefix.back() == '/';
  const bool begins = prefix.empty() || IsKey(open ? prefix.substr(0, prefix.size() - 1) : prefix);
  if (!begins)
    return Fail(ErrorCode::kUsage, StrCat("no stored object has a name that begins with ", Quoted(prefix)));
  if (!next.empty() && !IsKey(next))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(next), " is not where a list of stored objects goes on"));
  return {};
}

Result<void> ValidRange(std::string_view key, int64_t offset, int64_t limit) {
  if (offset >= 0 && limit >= 0) return {};
  return Fail(ErrorCode::kUsage, StrCat("cannot read ", limit, " bytes at ", offset, " of ", Quoted(key)));
}

Result<void> Store::GetInto(const std::string& key, int64_t offset, int64_t limit, std::string* out) const {
  OC_TRY(bytes, Get(key, offset, limit));
  *out = std::move(bytes);
  return {};
}

Result<void> Store::Put(const std::string& key, std::string_view bytes, PutMode mode) {
  return Put(key, std::span<const std::string_view>(&bytes, 1), mode);
}

Result<std::vector<StoredObjectInfo>> Store::ListAll(const std::string& prefix) const {
  std::vector<StoredObjectInfo> all;
  std::string next;
  do {
    OC_TRY(page, List(prefix, next));
    all.insert(all.end(), std::make_move_iterator(page.objects.begin()),
               std::make_move_iterator(page.objects.end()));
    next = std::move(page.next);
  } while (!next.empty());
  return all;
}

}  // namespace overcap
