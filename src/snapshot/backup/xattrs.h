// SPDX-License-Identifier: Apache-2.0
// Extended attributes and ACLs as a snapshot keeps them.
#pragma once

#include <string>
#include <string_view>

namespace overcap {

// Whether an attribute of this name belongs to a snapshot: those of users, of administrators, ACLs and
// capabilities; not what the machine itself keeps there (labels, checksums, overlays).
bool KeepsXattr(std::string_view name);

// Of an open file or folder, as EncodeXattrs gives them; "" for none and where there are no such things.
std::string ReadXattrs(int fd);
// Of the entry `name` of an open folder, which may be a symbolic link.
std::string ReadXattrsAt(int folder_fd, const char* name);

}  // namespace overcap
