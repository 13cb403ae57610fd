// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tree.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kHeader = "overcap tree 1\n";

// Takes records off the front of a listing.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }

  std::optional<TreeEntry> Next() {
    TreeEntry entry;
    const std::string_view kind = Take(' ');
    if (kind != "f" && kind != "x" && kind != "l" && kind != "d") return std::nullopt;
    entry.kind = static_cast<EntryKind>(kind[0]);
    if (entry.kind != EntryKind::kFolder && !TakeContent(&entry)) return std::nullopt;
    entry.path = Take('\0');
    if (bad_ || !PathIsClean(entry.path)) return std::nullopt;
    return entry;
  }

 private:
  bool TakeContent(TreeEntry* entry) {
    const std::string_view size = Take(' ');
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), entry->size);
    if (error != std::errc() || end != size.data() + size.size() || entry->size < 0) return false;
    if (size[0] == '-' || (size[0] == '0' && size.size() > 1)) return false;
    const std::optional<Digest> content = Digest::FromHex(Take(' '));
    if (content) entry->content = *content;
    return content.has_value();
  }

  std::string_view Take(char end) {
    const size_t at = rest_.find(end);
    bad_ |= at == std::string_view::npos;
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(std::min(taken.size() + 1, rest_.size()));
    return taken;
  }

  std::string_view rest_;
  bool bad_ = false;
};

// Knows the folders that the entry at hand may be in.
class Parents {
 public:
  bool Accept(const TreeEntry& entry) {
    const size_t slash = entry.path.rfind('/');
    const std::string_view parent =
        slash == std::string::npos ? std::string_view() : std::string_view(entry.path).substr(0, slash);
    while (!open_.empty() && open_.back() != parent) open_.pop_back();
    if (open_.empty() && !parent.empty()) return false;
    if (entry.kind == EntryKind::kFolder) open_.push_back(entry.path);
    return true;
  }

 private:
  std::vector<std::string> open_;
};

}  // namespace

std::string EncodeTree(const std::vector<TreeEntry>& entries) {
  std::string text(kHeader);
  text.reserve(entries.size() * 128);
  for (const TreeEntry& entry : entries) {
    text.push_back(static_cast<char>(entry.kind));
    text.push_back(' ');
    if (entry.kind != EntryKind::kFolder) {
      text.append(std::to_string(entry.size)).push_back(' ');
      text.append(entry.content.Hex()).push_back(' ');
    }
    text.append(entry.path).push_back('\0');
  }
  return text;
}

Result<std::vector<TreeEntry>> DecodeTree(std::string_view text, std::string_view id) {
  const auto damaged = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, StrCat("tree '", id, "' is damaged: ", what));
  };
  if (text.substr(0, kHeader.size()) != kHeader) return damaged("it does not begin like a tree");
  Reader reader(text.substr(kHeader.size()));
  Parents parents;
  std::vector<TreeEntry> entries;
  while (!reader.AtEnd()) {
    std::optional<TreeEntry> entry = reader.Next();
    if (!entry) return damaged(StrCat("entry ", entries.size() + 1, " cannot be read"));
    if (!entries.empty() && !PathBefore(entries.back().path, entry->path)) {
      return damaged(StrCat("'", entry->path, "' is out of order"));
    }
    if (!parents.Accept(*entry)) return damaged(StrCat("'", entry->path, "' is in no folder of it"));
    entries.push_back(std::move(*entry));
  }
  return entries;
}

}  // namespace overcap
