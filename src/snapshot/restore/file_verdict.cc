// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/file_verdict.h"

namespace overcap {

bool AttributesMatch(const WantedEntry& wanted, const SeenStamp& found, const AttributeMatch& match) {
  if (!wanted.IsSymlink() && wanted.mode != found.mode) return false;
  if (match.times && wanted.mtime_ns != found.mtime_ns) return false;
  return !match.owners || (wanted.uid == found.uid && wanted.gid == found.gid);
}

bool StillAsSeen(const SeenStamp& found, const SeenEntry* seen, const TargetKnowledge& knowledge) {
  return knowledge.has_seen && seen != nullptr && (seen->flags & kSeenNotInTree) == 0 &&
         seen->stamp == found && !RacilySeen(found, knowledge.seen_began_ns);
}

FileVerdict JudgeFile(const WantedEntry& wanted, const SeenStamp& found, const SeenEntry* seen,
                      bool same_xattrs, const TargetKnowledge& knowledge, const AttributeMatch& match) {
  if (found.size != wanted.size) return FileVerdict::kReplace;
  const bool same_attributes = AttributesMatch(wanted, found, match);
  if (StillAsSeen(found, seen, knowledge) && seen->IsFile()) {
    if (seen->content != wanted.Content()) return FileVerdict::kReplace;
    return same_attributes && same_xattrs ? FileVerdict::kSame : FileVerdict::kAttributes;
  }
  if (knowledge.resumes && found.ctime_ns >= knowledge.resumes_began_ns &&
      wanted.mtime_ns == found.mtime_ns && same_attributes) {
    return FileVerdict::kSame;
  }
  return FileVerdict::kRead;
}

}  // namespace overcap
