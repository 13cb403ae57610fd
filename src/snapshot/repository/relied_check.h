// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/result.h"
#include "snapshot/format/content_map.h"
#include "snapshot/sha256.h"

namespace overcap {

// kConflict ("try again") unless `has` says yes to every chunk that the tree needs.
Result<void> CheckTreeIsKept(const Digest& tree, const GetMeta& get,
                             const std::function<bool(const Digest&)>& has);

}  // namespace overcap
