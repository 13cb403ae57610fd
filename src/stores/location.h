// SPDX-License-Identifier: Apache-2.0
// Where a store is, as people write it (docs/formats/stores.md). Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

enum class StoreKind { kFolder, kMemory, kS3, kAzure, kSsh };

struct StoreLocation {
  StoreKind kind = StoreKind::kFolder;
  std::string account = {};          // az
  std::string bucket = {};           // s3; az: the container
  std::string user = {}, host = {};  // ssh; user "": as ssh's configuration says
  int port = 0;                      // ssh; 0: as ssh's configuration says
  std::string path = {};             // folder: as written; memory: its name; ssh: "/data", "~/data", "~"
  std::string prefix = {};           // s3, az: without slashes at both ends
  bool open_end = false;             // written with a '/' at its end: a folder is meant

  bool operator==(const StoreLocation&) const = default;

  // As it would be written; equal locations give equal texts.
  std::string Text() const;
  // The same with more behind it: Below("a/b").
  StoreLocation Below(std::string_view more) const;
  // Its last part, and all before it; "" where there is none (a bucket, the root folder).
  std::string Name() const;
  StoreLocation Above() const;
};

// kUsage. Whatever has no scheme is a folder, as it is written. A text that seems to hold a key is not
// repeated in the message.
Result<StoreLocation> ParseStoreLocation(std::string_view text);

// Whether it has a scheme: "s3://bucket", "mem:x", also one that nobody knows ("gs://x").
bool HasStoreScheme(std::string_view text);

// "data" and "x/y" of "data:x/y", if that has the form of a name in `stores:`; else both are empty.
struct StoreName {
  std::string name, path;
};
StoreName SplitStoreName(std::string_view text);

}  // namespace overcap
