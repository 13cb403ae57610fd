// SPDX-License-Identifier: Apache-2.0
// Writing past the page cache. A pack is written once and not read again soon: copying it into the cache
// costs more processor time than compressing it did, and pushes out what the user's own work needs.
#pragma once

#include <span>
#include <string_view>

namespace overcap {

// Fills an empty file, open for writing, with the pieces one after the other; 0 or an errno. Small ones, and
// those on file systems without direct writes, go through the cache.
int WriteAll(int fd, std::span<const std::string_view> pieces);

}  // namespace overcap
