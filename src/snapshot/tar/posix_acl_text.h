// SPDX-License-Identifier: Apache-2.0
// ACLs as other programs write them into tars ("user::rw-,user:1000:r--,mask::r--") and as the kernel keeps
// them (the xattrs system.posix_acl_*). Pure but for looking up names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace overcap {

// The number of a user (`group` false) or group; nullopt: nobody knows it.
using FindAclId = std::function<std::optional<uint32_t>(std::string_view name, bool group)>;

// Entries are parted by commas or newlines, comments begin with '#', words may be short ("u::rwx"). A number
// behind the permissions (libarchive, star) counts more than the name. nullopt: it is none, or names somebody
// nobody knows.
std::optional<std::string> AclTextToXattr(std::string_view text, const FindAclId& find);
// With numbers in place of names. nullopt: the value is no ACL.
std::optional<std::string> AclXattrToText(std::string_view value);

// By the user and group lists of this machine.
std::optional<uint32_t> FindAclIdHere(std::string_view name, bool group);

}  // namespace overcap
