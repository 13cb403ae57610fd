// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/tree_limits.h"
#include "snapshot/format/tree_page.h"

namespace overcap {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

// 'T', level, count: what stands before the body.
std::string WithHead(int level, size_t count, const std::string& body) {
  std::string bytes;
  bytes.reserve(2 + kVarintMost + body.size());
  bytes.push_back('T');
  bytes.push_back(static_cast<char>(level));
  AppendVarint(&bytes, count);
  return bytes.append(body);
}

// The fields that every entry has, in few writes: there are a million of them.
void AppendFixed(const SnapshotEntry& entry, std::string* out) {
  char buffer[8 * kVarintMost];
  char* to = buffer;
  int64_t seconds = entry.mtime_ns / kBillion, nanoseconds = entry.mtime_ns % kBillion;
  if (nanoseconds < 0) {
    nanoseconds += kBillion;
    --seconds;
  }
  *to++ = static_cast<char>(entry.type);
  to = PutVarint(to, entry.mode);
  to = PutVarint(to, entry.uid);
  to = PutVarint(to, entry.gid);
  to = PutVarint(to, ZigZag(seconds));
  to = PutVarint(to, static_cast<uint64_t>(nanoseconds));
  to = PutVarint(to, (entry.xattrs.empty() ? 0u : 1u) | (entry.unsteady ? 2u : 0u));
  if (entry.IsFile()) {
    to = PutVarint(to, static_cast<uint64_t>(entry.size));
    *to++ = static_cast<char>(entry.content.kind);
  }
  out->append(buffer, static_cast<size_t>(to - buffer));
}

void AppendEntry(const SnapshotEntry& entry, size_t shared, std::string* out) {
  AppendVarint(out, shared);
  AppendBytes(out, std::string_view(entry.path).substr(shared));
  AppendFixed(entry, out);
  if (entry.IsFile() && entry.content.kind != FileContent::Kind::kEmpty) AppendDigest(out, entry.content.id);
  if (entry.type == SnapshotEntryType::kHardLink || entry.type == SnapshotEntryType::kSymlink) {
    AppendBytes(out, entry.target);
  }
  if (entry.xattrs.empty()) return;
  AppendVarint(out, entry.xattrs.size());
  for (const ExtendedAttribute& xattr : entry.xattrs) {
    AppendBytes(out, xattr.name);
    AppendBytes(out, xattr.value);
  }
}

TreeTotals TotalsOf(const SnapshotEntry& entry) {
  const bool file = entry.type == SnapshotEntryType::kFile;
  return {.entries = 1, .files = file ? 1 : 0, .bytes = file ? entry.size : 0};
}

}  // namespace

bool AddTotals(TreeTotals* sum, const TreeTotals& more) {
  return !__builtin_add_overflow(sum->entries, more.entries, &sum->entries) &&
         !__builtin_add_overflow(sum->files, more.files, &sum->files) &&
         !__builtin_add_overflow(sum->bytes, more.bytes, &sum->bytes);
}

bool PageEncoder::Add(const SnapshotEntry& entry, size_t common) {
  const size_t shared = Empty() ? 0 : common;
  const size_t before = body_.size();
  AppendEntry(entry, shared, &body_);
  const size_t size = body_.size() - before + shared;
  TreeTotals totals = totals_;
  if (size > kEntryMost || !AddTotals(&totals, TotalsOf(entry))) {
    body_.resize(before);
    return false;
  }
  if (Empty()) first_ = entry.path;
  ++count_;
  size_ += size;
  totals_ = totals;
  ended_ = (Crc32c(entry.path) & kPageEndMask) == 0 || count_ == kPageEntries || size_ >= kPageBytes;
  return true;
}

std::string PageEncoder::Take() {
  std::string bytes = WithHead(0, count_, body_);
  body_.clear();
  count_ = size_ = 0;
  ended_ = false;
  totals_ = {};
  return bytes;
}

void NodeEncoder::Add(const TreeChild& child) {
  if (Empty()) first_ = child.first;
  AppendBytes(&body_, child.first);
  AppendDigest(&body_, child.id);
  AppendVarint(&body_, static_cast<uint64_t>(child.totals.entries));
  AppendVarint(&body_, static_cast<uint64_t>(child.totals.files));
  AppendSvarint(&body_, child.totals.bytes);
  AddTotals(&totals_, child.totals);
  ++count_;
  const bool by_id = (child.id.bytes[0] & kNodeEndMask) == 0;
  ended_ = count_ >= 2 && (by_id || count_ == kNodeChildren || body_.size() >= kNodeBytes);
}

std::string NodeEncoder::Take(int level) {
  std::string bytes = WithHead(level, count_, body_);
  body_.clear();
  count_ = 0;
  ended_ = false;
  totals_ = {};
  return bytes;
}

}  // namespace overcap
