// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

// This program as a copy on another host: $HOME/.cache/overcap/bin/overcap-<version>-<first 12 digits of its
// SHA-256>.
struct BinaryCopy {
  std::string name;
  std::string bytes;

  static Result<BinaryCopy> Of(const std::string& file, const std::string& version);

  // Remote commands for ssh, to be read by whatever shell the user has there. The first takes the bytes from
  // its standard input, unless the copy is there already (then it prints "there"); the copy appears at once
  // and whole, or not at all.
  std::string StoreCommand() const;
  std::string NodeCommand(const std::string& verb = "launch-node") const;
};

}  // namespace overcap
