// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/file_links.h"

#include "base/text.h"

namespace overcap {

bool FileLinks::Note(const TreeOrder::Item& item) {
  if (item.link == nullptr) return true;
  const ReadJob job{item.folder, item.entry};
  const auto [at, is_first] = firsts_.try_emplace({item.link->device, item.entry->seen.stamp.inode}, job);
  if (is_first) return true;
  others_.emplace_back(job, &at->second);
  first_of_.emplace(item.entry, &at->second);
  return false;
}

void FileLinks::Share(std::vector<BackupProblem>* problems) {
  for (auto& [other, first] : others_) {
    ScannedEntry& entry = *other.entry;
    const ScannedEntry& read = *first->entry;
    if (read.fate == EntryFate::kGone) {
      entry.fate = EntryFate::kGone;
      problems->push_back({other.folder->PathOf(entry),
                           StrCat("is the same file as ", Quoted(first->folder->PathOf(read), 200),
                                  ", which could not be read"),
                           false});
      continue;
    }
    const bool same =
        read.fate == EntryFate::kSame && (entry.fate == EntryFate::kSame || entry.fate == EntryFate::kProve);
    entry.fate = same ? EntryFate::kSame : EntryFate::kRead;
    entry.seen.stamp = read.seen.stamp;
    entry.seen.content = read.seen.content;
    entry.seen.xattrs = read.seen.xattrs;
    entry.seen.flags = read.seen.flags;
  }
}

const ReadJob* FileLinks::FirstOf(const ScannedEntry* entry) const {
  if (first_of_.empty()) return nullptr;
  const auto found = first_of_.find(entry);
  return found == first_of_.end() ? nullptr : found->second;
}

}  // namespace overcap
