// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "stores/location.h"

namespace overcap {

// kUsage when a folder would be copied into itself, or, where extra objects are removed, when what is copied
// is part of what would be removed. Folders are absolute. Pure.
Result<void> RefuseOverlap(const StoreLocation& from, const StoreLocation& to, bool remove_extra);

}  // namespace overcap
