// SPDX-License-Identifier: Apache-2.0
// A listing, object by object, with one page in memory; and two of them side by side.
#pragma once

#include <optional>
#include <string>

#include "stores/store.h"

namespace overcap {

class KeyStream {
 public:
  // The store must outlive it.
  explicit KeyStream(const Store& store, std::string prefix = "")
      : store_(store), prefix_(std::move(prefix)) {}

  // The object that comes next, nullptr at the end; stays until Pop.
  Result<const StoredObjectInfo*> Peek();
  void Pop() { ++at_; }
  int64_t left_out() const { return left_out_; }  // of the pages so far

 private:
  const Store& store_;
  const std::string prefix_;
  StorePage page_;
  size_t at_ = 0;
  bool begun_ = false;
  int64_t left_out_ = 0;
};

// What two listings have under one key; one of the two at least.
struct KeyPair {
  std::optional<StoredObjectInfo> left, right;
};
// The next of both in the order of keys; nullopt at the end of both.
Result<std::optional<KeyPair>> NextPair(KeyStream* left, KeyStream* right);

}  // namespace overcap
