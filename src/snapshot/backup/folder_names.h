// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

// The names in one folder after the other, each time sorted by their bytes; its memory is used again.
class FolderNames {
 public:
  struct Name {
    std::string_view text;  // a NUL follows
    unsigned char type;     // DT_*
  };

  FolderNames();
  // All names of the open folder. 0, or the errno; then what was listed before it is there.
  int List(int fd);
  const std::vector<Name>& names() const { return names_; }

 private:
  struct Place {
    size_t offset;
    uint32_t length;
    unsigned char type;
  };

  std::unique_ptr<char[]> buffer_;  // for the kernel
  std::string bytes_;               // the names, NULs between them
  std::vector<Place> places_;
  std::vector<Name> names_;
};

}  // namespace overcap
