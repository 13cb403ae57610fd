// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/entry_rules.h"
#include "snapshot/format/tree_limits.h"
#include "snapshot/format/tree_page.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

constexpr int64_t kBillion = 1'000'000'000;
constexpr int64_t kSecondsMost = INT64_MAX / kBillion - 1;  // nanoseconds are 64 bits
// Strings of earlier pages keep their memory; this much of it at most.
constexpr size_t kHeldMost = 8 << 20;
constexpr size_t kLeastEntry = 9, kLeastChild = 36, kLeastXattr = 2;

tl::unexpected<Error> Damaged(std::string_view why) {
  return Fail(ErrorCode::kCorrupt, StrCat("a page of the tree is damaged: ", why));
}

// What stands before the entries or children: how many there are, 0 when it cannot be.
size_t ReadHead(ByteReader* reader, size_t most, size_t least_size) {
  reader->Raw(2);
  const uint64_t count = reader->VarintUpTo(most);
  return reader->ok() && count <= reader->left() / least_size ? count : 0;
}

bool IsType(char byte) {
  return byte == 'f' || byte == 'd' || byte == 'l' || byte == 'h';
}

bool ReadContent(ByteReader* reader, SnapshotEntry* entry) {
  entry->size = static_cast<int64_t>(reader->VarintUpTo(INT64_MAX));
  const char kind = reader->Byte();
  if (kind != '0' && kind != 'c' && kind != 'm') return false;
  entry->content.kind = static_cast<FileContent::Kind>(kind);
  entry->content.id = kind == '0' ? Digest() : reader->Id();
  return true;
}

bool ReadXattrs(ByteReader* reader, SnapshotEntry* entry) {
  const uint64_t count = reader->VarintUpTo(kXattrNamesMost / 2);
  if (count == 0 || count > reader->left() / kLeastXattr) return false;
  for (uint64_t i = 0; i < count && reader->ok(); ++i) {
    ExtendedAttribute xattr;
    xattr.name = reader->Bytes(kXattrNameMost);
    xattr.value = reader->Bytes(kXattrValueMost);
    if (xattr.name.empty() || (i > 0 && xattr.name <= entry->xattrs.back().name)) return false;
    entry->xattrs.push_back(std::move(xattr));
  }
  return reader->ok();
}

void ReadTime(ByteReader* reader, SnapshotEntry* entry) {
  const int64_t seconds = reader->Svarint();
  const auto nanoseconds = static_cast<int64_t>(reader->VarintUpTo(kBillion - 1));
  if (seconds < -kSecondsMost || seconds > kSecondsMost) return reader->Refuse();
  entry->mtime_ns = seconds * kBillion + nanoseconds;
}

// All behind the path.
bool ReadFields(ByteReader* reader, SnapshotEntry* entry) {
  const char type = reader->Byte();
  if (!IsType(type)) return false;
  entry->type = static_cast<SnapshotEntryType>(type);
  entry->mode = static_cast<uint32_t>(reader->VarintUpTo(07777));
  entry->uid = static_cast<uint32_t>(reader->VarintUpTo(UINT32_MAX));
  entry->gid = static_cast<uint32_t>(reader->VarintUpTo(UINT32_MAX));
  ReadTime(reader, entry);
  const uint64_t flags = reader->VarintUpTo(3);
  entry->unsteady = (flags & 2) != 0;
  entry->size = 0;
  entry->content = {};
  entry->target.clear();
  entry->xattrs.clear();
  if (entry->IsFile() && !ReadContent(reader, entry)) return false;
  if (type == 'h' || type == 'l') entry->target = reader->Bytes(kPathMost);
  if ((flags & 1) != 0 && !ReadXattrs(reader, entry)) return false;
  return reader->ok();
}

// nullptr, or what is wrong. `before` is nullptr for the first; `common` is what their paths share.
const char* ReadEntry(ByteReader* reader, const SnapshotEntry* before, SnapshotEntry* entry, size_t* common) {
  entry->path.clear();
  *common = reader->VarintUpTo(before == nullptr ? 0 : before->path.size());
  const std::string_view rest = reader->Bytes(kPathMost - *common);
  if (!reader->ok()) return "an entry cannot be read";
  if (before != nullptr) entry->path.assign(before->path, 0, *common);
  entry->path.append(rest);
  const char* problem =
      before == nullptr
          ? PathProblem(entry->path)
          : PathStepProblem(before->path, before->type == SnapshotEntryType::kFolder, entry->path, *common);
  if (problem != nullptr) return problem;
  if (!ReadFields(reader, entry)) return "an entry cannot be read";
  return EntryProblem(*entry);
}

// Takes the entry into the sums of the page.
bool Count(const SnapshotEntry& entry, TreePage* page) {
  ++page->count;
  ++page->totals.entries;
  page->has_hard_links |= entry.type == SnapshotEntryType::kHardLink;
  if (entry.type != SnapshotEntryType::kFile) return true;
  ++page->totals.files;
  return !__builtin_add_overflow(page->totals.bytes, entry.size, &page->totals.bytes);
}

}  // namespace

int TreeLevelOf(std::string_view bytes) {
  if (bytes.size() < 3 || bytes[0] != 'T') return -1;
  const int level = static_cast<unsigned char>(bytes[1]);
  return level <= kTreeLevels ? level : -1;
}

void TreePage::Reset() {
  if (held > kHeldMost) {
    slots = {};
    held = 0;
  }
  count = 0;
  has_hard_links = false;
  totals = {};
}

size_t TreePage::LowerBound(std::string_view path) const {
  const auto before = [](const SnapshotEntry& entry, std::string_view wanted) {
    return PathBefore(entry.path, wanted);
  };
  return static_cast<size_t>(std::lower_bound(begin(), end(), path, before) - begin());
}

Result<void> DecodeTreePage(std::string_view bytes, TreePage* page) {
  page->Reset();
  if (TreeLevelOf(bytes) != 0) return Damaged("it does not begin like one");
  ByteReader reader(bytes);
  const size_t count = ReadHead(&reader, kPageEntries, kLeastEntry);
  if (count == 0) return Damaged("it has not the entries that it counts");
  if (page->slots.size() < count) page->slots.resize(count);
  const SnapshotEntry* before = nullptr;
  for (size_t i = 0, size = 0, common = 0; i < count; ++i) {
    if (size >= kPageBytes) return Damaged("it is longer than a page");
    SnapshotEntry* entry = &page->slots[i];
    const size_t left = reader.left();
    const char* problem = ReadEntry(&reader, before, entry, &common);
    if (problem != nullptr) return Damaged(StrCat(Quoted(entry->path), ": ", problem));
    const size_t whole = left - reader.left() + common;
    if (whole > kEntryMost) return Damaged("an entry is too large");
    size += whole;
    page->held += whole;
    if (!Count(*entry, page)) return Damaged("its files are larger than any may be");
    before = entry;
  }
  if (!reader.AtEnd()) return Damaged("there is something behind it");
  return {};
}

size_t TreeNode::ChildOf(std::string_view path) const {
  const auto behind = [](std::string_view wanted, const TreeChild& child) {
    return PathBefore(wanted, child.first);
  };
  const auto next = std::upper_bound(children.begin(), children.end(), path, behind);
  return next == children.begin() ? 0 : static_cast<size_t>(next - children.begin()) - 1;
}

Result<TreeNode> DecodeTreeNode(std::string_view bytes) {
  TreeNode node;
  node.level = TreeLevelOf(bytes);
  if (node.level < 1) return Damaged("it does not begin like a node");
  ByteReader reader(bytes);
  const size_t count = ReadHead(&reader, kNodeChildren, kLeastChild);
  if (count == 0) return Damaged("it has not the children that it counts");
  node.children.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    TreeChild child;
    child.first = reader.Bytes(kPathMost);
    child.id = reader.Id();
    child.totals.entries = static_cast<int64_t>(reader.VarintUpTo(INT64_MAX));
    child.totals.files = static_cast<int64_t>(reader.VarintUpTo(static_cast<uint64_t>(child.totals.entries)));
    child.totals.bytes = reader.Svarint();
    if (!reader.ok() || child.totals.entries == 0 || child.totals.bytes < 0)
      return Damaged("a child cannot be read");
    if (const char* problem = PathProblem(child.first))
      return Damaged(StrCat(Quoted(child.first), ": ", problem));
    if (i > 0 && !PathBefore(node.children.back().first, child.first)) {
      return Damaged(StrCat(Quoted(child.first), ": it is out of order"));
    }
    if (!AddTotals(&node.totals, child.totals)) return Damaged("its sums are larger than any may be");
    node.children.push_back(std::move(child));
  }
  if (!reader.AtEnd()) return Damaged("there is something behind it");
  return node;
}

}  // namespace overcap
