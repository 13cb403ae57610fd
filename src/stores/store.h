// SPDX-License-Identifier: Apache-2.0
// The seam behind which bytes live: a folder, memory, an object store. stores/testing/store_conformance.h
// says what each must do; a test may not tell which one it runs on.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct StoredObjectInfo {
  std::string key;
  int64_t size = 0;
  int64_t modified_us = 0;  // wall time of the store; for people and for clean-up, never for correctness
};

struct StorePage {
  std::vector<StoredObjectInfo> objects;  // by key
  std::string next;                       // give it to List for the page after this; "": this was the last
};

enum class PutMode {
  kReplace,  // whatever was there is replaced
  kCreate,   // kConflict when the key is there: exactly one of several writers wins
};

// Keys are relative paths of `a-z A-Z 0-9 . _ -` parts, none of them empty, beginning with '.' or longer than
// 255 bytes, 900 bytes in all at most (ValidKey). Callers see to it that no key is the folder of another ("a"
// and "a/b"). Every function may be called from several threads at once; all others see an object at
// once, whole or not at all. Errors: kUsage a bad key, kNotFound, kDenied, kUnavailable (full, unreachable;
// may be tried again), kConflict, kCorrupt.
class Store {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  virtual ~Store() = default;

  // The pieces one after the other become the object; durable when it returns. After an error the key has its
  // old content or all of the new one.
  virtual Result<void> Put(const std::string& key, std::span<const std::string_view> pieces,
                           PutMode mode) = 0;
  // Bytes [offset, offset + limit); fewer at its end.
  virtual Result<std::string> Get(const std::string& key, int64_t offset, int64_t limit) const = 0;
  // The same into memory that the caller keeps from one to the next; what `out` holds after an error is open.
  virtual Result<void> GetInto(const std::string& key, int64_t offset, int64_t limit, std::string* out) const;
  virtual Result<StoredObjectInfo> Stat(const std::string& key) const = 0;
  // Keys that begin with `prefix` (which may end in the middle of a name), in byte order, some thousand at
  // once; `next` as the page before said, "" at first. What is put or removed meanwhile may or may not be
  // seen.
  virtual Result<StorePage> List(const std::string& prefix, const std::string& next) const = 0;
  // Fine when it is gone. A power cut soon after may bring it back.
  virtual Result<void> Remove(const std::string& key) = 0;
  // Removes what crashed writers left behind (temporary files) and that has reached this age by the store's
  // own clock; how many there were.
  virtual Result<int64_t> CleanUp(int64_t older_than_us) = 0;
  // For messages: "/nfs/lab/store", "s3://bucket/prefix".
  virtual std::string Location() const = 0;

  // In terms of the above:
  Result<void> Put(const std::string& key, std::string_view bytes, PutMode mode = PutMode::kReplace);
  Result<std::string> Get(const std::string& key) const { return Get(key, 0, kAll); }
  // All pages.
  Result<std::vector<StoredObjectInfo>> ListAll(const std::string& prefix) const;
};

constexpr size_t kLongestKey = 900, kLongestKeyPart = 255;

// kUsage, naming the key, unless it is one.
Result<void> ValidKey(std::string_view key);
// For stores: whether it is one part of a key; kUsage unless a key can begin so, or unless List gave `next`.
bool IsKeyPart(std::string_view part);
Result<void> ValidListing(std::string_view prefix, std::string_view next);
// kUsage for negative numbers.
Result<void> ValidRange(std::string_view key, int64_t offset, int64_t limit);

}  // namespace overcap
