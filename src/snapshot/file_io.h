// SPDX-License-Identifier: Apache-2.0
// Whole reads and writes on file descriptors; -1 and errno on failure, like the calls below them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "base/result.h"

namespace overcap {

// read() that goes on after signals.
ssize_t ReadSome(int fd, char* buffer, size_t size);
bool WriteWhole(int fd, std::string_view data);

// All that can be read from `fd`; `expected` is a guess of its size.
bool ReadToEnd(int fd, size_t expected, std::string* out);

// The content of a small file below the folder `folder_fd`; no symbolic link is followed in its last
// component.
Result<std::string> ReadFileAt(int folder_fd, const std::string& path);
// The same, "" when it cannot be read.
std::string ReadFileOrNothing(int folder_fd, const std::string& path);

// rename() that never replaces: EEXIST when `to` is there.
bool RenameNew(int from_fd, const std::string& from, int to_fd, const std::string& to);

// The target of a symbolic link.
Result<std::string> ReadLinkAt(int folder_fd, const std::string& path);

}  // namespace overcap
