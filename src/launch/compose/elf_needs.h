// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace overcap {

// Bytes [offset, offset + size) of a file; fewer when it ends there.
using ReadAt = std::function<std::string(uint64_t offset, size_t size)>;

// The shared libraries that an ELF program (64 bit, little endian) names. Empty for anything else and for
// what is damaged: never an error, never more than a few MiB read.
std::vector<std::string> ElfNeeds(const ReadAt& read);

// Whether the program at `path` names a library of an MPI: then only an mpiexec can make its ranks know each
// other. False for scripts, and when it cannot be read.
bool NeedsMpi(const std::string& path);

}  // namespace overcap
