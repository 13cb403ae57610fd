// SPDX-License-Identifier: Apache-2.0
// What an entry of a tree may say, for writers and readers alike. Pure.
#pragma once

#include <string_view>

#include "snapshot/format/entry.h"

namespace overcap {

// All but its path's place in the list: nullptr, or what is wrong with it.
const char* EntryProblem(const SnapshotEntry& entry);

// Whether `path` may directly follow the entry `before`; `common` is how many bytes they share at the
// beginning. Relies on `before` being right: only what is new in `path` is looked at.
const char* PathStepProblem(std::string_view before, bool before_is_folder, std::string_view path,
                            size_t common);

// The same for a path of which nothing is known: "" or clean.
const char* PathProblem(std::string_view path);

}  // namespace overcap
