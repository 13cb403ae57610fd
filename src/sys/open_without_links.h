// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sys/fd.h"

namespace overcap {

// Opens the relative `path` below the open folder `root` ("" and ".": that folder) without following a link
// in any part of it, with O_CLOEXEC. On failure no Fd and errno: ENOTDIR if a part before the last is a link
// or no folder, ELOOP if the last part is a link.
Fd OpenWithoutLinks(int root, const std::string& path, int flags);

}  // namespace overcap
