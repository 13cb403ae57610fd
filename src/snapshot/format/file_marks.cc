// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/file_marks.h"

#include <cstring>

#include "snapshot/format/bytes.h"

namespace overcap {

FileMarks::Mark FileMarks::MarkOf(const SnapshotEntry& entry) {
  const bool link = entry.type == SnapshotEntryType::kHardLink;
  buffer_.clear();
  AppendBytes(&buffer_, link ? entry.target : entry.path);
  for (const uint64_t number :
       {uint64_t{entry.mode}, uint64_t{entry.uid}, uint64_t{entry.gid}, static_cast<uint64_t>(entry.mtime_ns),
        static_cast<uint64_t>(entry.size), uint64_t{entry.unsteady}, uint64_t{entry.xattrs.size()}}) {
    AppendVarint(&buffer_, number);
  }
  buffer_.push_back(static_cast<char>(entry.content.kind));
  AppendDigest(&buffer_, entry.content.id);
  for (const ExtendedAttribute& xattr : entry.xattrs) {
    AppendBytes(&buffer_, xattr.name);
    AppendBytes(&buffer_, xattr.value);
  }
  const Digest digest = Sha256Of(buffer_);
  Mark mark;
  std::memcpy(&mark, digest.bytes.data(), sizeof mark);
  return mark;
}

FileMarks::Mark* FileMarks::Slot(const Mark& mark) {
  size_t at = mark.first & (slots_.size() - 1);
  while (slots_[at] != Mark() && slots_[at] != mark) at = (at + 1) & (slots_.size() - 1);
  return &slots_[at];
}

void FileMarks::Grow() {
  std::vector<Mark> old(slots_.empty() ? 1024 : slots_.size() * 2);
  old.swap(slots_);
  for (const Mark& mark : old) {
    if (mark != Mark()) *Slot(mark) = mark;
  }
}

void FileMarks::Add(const SnapshotEntry& entry) {
  if (2 * (count_ + 1) > slots_.size()) Grow();
  const Mark mark = MarkOf(entry);
  Mark* slot = Slot(mark);
  if (*slot == mark) return;
  *slot = mark;
  ++count_;
}

bool FileMarks::Has(const SnapshotEntry& entry) {
  if (slots_.empty()) return false;
  const Mark mark = MarkOf(entry);
  return *Slot(mark) == mark;
}

}  // namespace overcap
