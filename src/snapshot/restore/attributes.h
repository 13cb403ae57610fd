// SPDX-License-Identifier: Apache-2.0
// Mode, owner, times and extended attributes of what is restored.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "snapshot/format/entry.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// What this process may and should set; the same for all entries of a restore.
struct AttributeRules {
  bool owners = false;
  bool root = false;  // attributes other than user.* and ACLs can be set
  uint32_t uid = 0;   // what new files have
  uint32_t gid = 0;
  uint32_t umask = 0;

  static AttributeRules OfThisProcess(bool owners);
  // Whether this attribute is restored and compared.
  bool Restores(const std::string& name) const;
  bool NeedsOwner(const WantedEntry& entry, bool new_file) const {
    return owners && (!new_file || entry.uid != uid || entry.gid != gid);
  }
  // With which mode a new file or folder is made, so that most need no chmod later; folders can be filled.
  uint32_t CreateMode(const WantedEntry& entry) const {
    return (NeedsOwner(entry, true) ? 0600 : entry.mode & 0777U) | (entry.IsFolder() ? 0700U : 0U);
  }
};

struct FoundXattrs {
  std::vector<ExtendedAttribute> list;  // those that are restored, by name
  int error = 0;                        // errno when they could not be read
};
FoundXattrs ReadXattrs(int fd, const AttributeRules& rules);
// Of an entry of a folder, which may be a link.
FoundXattrs ReadXattrsAt(int folder_fd, const char* name, const AttributeRules& rules);
// The wanted ones that this process restores.
std::vector<ExtendedAttribute> RestoredXattrs(const std::vector<ExtendedAttribute>& wanted,
                                              const AttributeRules& rules);

// How what the attributes are set on came to be.
enum class AttributesOn {
  kNew,        // made a moment ago with CreateMode
  kInherited,  // the same, in a folder that hands ACLs or its group down
  kOld,        // was there
};
// A file or folder that is open: owner, mode, attributes, at last mtime, as mtime says that all is done. 0 or
// errno.
int SetAttributes(int fd, const WantedEntry& entry, const std::vector<ExtendedAttribute>& xattrs,
                  const AttributeRules& rules, AttributesOn on);
// A symbolic link.
int SetLinkAttributes(int folder_fd, const char* name, const WantedEntry& entry,
                      const std::vector<ExtendedAttribute>& xattrs, const AttributeRules& rules);

struct timespec TimeOf(int64_t ns);

}  // namespace overcap
