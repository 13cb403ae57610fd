// SPDX-License-Identifier: Apache-2.0
// Whether a copy is needed (docs/formats/stores.md, "What is the same"). Pure.
#pragma once

#include <string_view>

#include "stores/store.h"

namespace overcap {

struct SameRules {
  bool keeps_times = false;  // the destination has the times of what is copied there
  bool checksum = false;     // neither times nor what stores tell are believed
  bool all = false;          // everything is copied
};

enum class CopyVerdict {
  kSame,
  kNew,      // it is not there
  kSize,     // another size
  kContent,  // another MD5
  kTime,     // another time
  kRead,     // only reading both tells
  kSum,      // only reading the source and the checksum that the destination tells
  kAsked,    // SameRules::all
};
std::string_view CopyVerdictText(CopyVerdict verdict);  // "new", "another size"

// `to` may be nullptr.
CopyVerdict JudgeCopy(const StoredObjectInfo& from, const StoredObjectInfo* to, const SameRules& rules);

}  // namespace overcap
