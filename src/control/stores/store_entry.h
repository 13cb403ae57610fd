// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

namespace overcap {

// One store of `stores:` in overcap.yaml, as written. It holds no key.
struct StoreEntry {
  std::string at = {};           // a location
  std::string endpoint = {};     // s3, az
  std::string region = {};       // s3
  std::string profile = {};      // s3
  std::string credentials = {};  // a storage file; may begin with ~ or a variable
  std::string ca_file = {};
  std::optional<bool> path_style = {};  // s3

  bool operator==(const StoreEntry&) const = default;
};

using StoreEntries = std::map<std::string, StoreEntry>;

}  // namespace overcap
