// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "snapshot/restore/file_maker.h"

namespace overcap {

struct NoteSeenRequest {
  std::string file;
  std::string repository_id;
  Digest tree;
  int64_t began_ns = 0;         // of the look that this takes now
  int64_t survey_began_ns = 0;  // of the one that found what was there already
  std::string keep_name = {};   // of the target's own folder, no part of the tree
};

// Writes the cache of the target, so that the next backup or restore reads no file that this one has written
// or checked. What was made is looked at again; what is not as it was made is left out.
Result<void> NoteSeen(RestoreScene* scene, const NoteSeenRequest& request);

}  // namespace overcap
