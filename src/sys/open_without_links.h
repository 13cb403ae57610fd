// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sys/fd.h"

namespace overcap {

// Opens `path`, which is relative, below the open folder `root` ("" and ".": that folder) without following a
// link in any part of it, and closed on exec. No Fd and errno: ENOTDIR where a link or something else that is
// no folder is on the way, ELOOP where the last part is a link.
Fd OpenWithoutLinks(int root, const std::string& path, int flags);

}  // namespace overcap
