// SPDX-License-Identifier: Apache-2.0
// Whether what is there is what is wanted, as far as can be told without reading it. Pure.
#pragma once

#include <cstdint>

#include "snapshot/backup/seen.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// What is known of the target from before.
struct TargetKnowledge {
  bool has_seen = false;
  int64_t seen_began_ns = 0;
  // An unfinished restore of the same tree in this boot began then: a file that it has given its time is
  // whole.
  bool resumes = false;
  int64_t resumes_began_ns = 0;
};

// Which attributes count.
struct AttributeMatch {
  bool times = true;
  bool owners = false;
};

enum class FileVerdict {
  kSame,        // content and attributes are right
  kAttributes,  // the content is right
  kRead,        // only its content can tell
  kReplace,     // the content is wrong
};

bool AttributesMatch(const WantedEntry& wanted, const SeenStamp& found, const AttributeMatch& match);

// Whether the stamp proves that the entry is still what the cache says of it.
bool StillAsSeen(const SeenStamp& found, const SeenEntry* seen, const TargetKnowledge& knowledge);

// `seen` may be null; `same_xattrs` says whether the cache has the wanted extended attributes.
FileVerdict JudgeFile(const WantedEntry& wanted, const SeenStamp& found, const SeenEntry* seen,
                      bool same_xattrs, const TargetKnowledge& knowledge, const AttributeMatch& match);

}  // namespace overcap
