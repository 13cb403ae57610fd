// SPDX-License-Identifier: Apache-2.0
// Where pages and nodes of a tree end, and what a reader accepts (docs/formats/snapshot.md, "Trees").
#pragma once

#include <cstddef>
#include <cstdint>

namespace overcap {

constexpr size_t kPageEntries = 4096;
constexpr size_t kPageBytes = 1 << 20;  // of the entries, each with its whole path
constexpr uint32_t kPageEndMask = 0xFF;
constexpr size_t kNodeChildren = 1024;
constexpr size_t kNodeBytes = 1 << 20;
constexpr uint8_t kNodeEndMask = 0x3F;
constexpr int kTreeLevels = 32;  // more than any number of pages needs, with two children in a node

constexpr size_t kPathMost = 1 << 20;
constexpr size_t kEntryMost = 4 << 20;      // encoded, with its whole path: a page always fits into a chunk
constexpr size_t kXattrNamesMost = 65'536;  // of an entry, each with one byte more
constexpr size_t kXattrNameMost = 255;
constexpr size_t kXattrValueMost = 65'536;

}  // namespace overcap
