// SPDX-License-Identifier: Apache-2.0
// A listing, object by object, with one page in memory; and two of them side by side.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stores/paged_listing.h"

namespace overcap {

class KeyStream {
 public:
  // The store must outlive it.
  explicit KeyStream(const Store& store, std::string prefix = "")
      : store_(store), prefix_(std::move(prefix)), listing_(std::in_place, store_, prefix_) {}

  // The object that comes next, nullptr at the end; stays until Pop.
  Result<const StoredObjectInfo*> Peek();
  void Pop() { ++at_; }
  int64_t left_out() const { return left_out_; }  // of the pages so far
  // False once the service turns out to have an order of its own.
  bool in_order() const { return whole_ || listing_->in_order(); }
  // Begins again: from the first page, or, where the service has an order of its own, with the whole list in
  // memory and in byte order.
  Result<void> BeginAgain();

 private:
  const Store& store_;
  const std::string prefix_;
  std::optional<PagedListing> listing_;
  std::vector<StoredObjectInfo> objects_;  // of this page
  size_t at_ = 0;
  bool whole_ = false;  // they are all that there are
  int64_t left_out_ = 0;
};

// What two listings have under one key; one of the two at least.
struct KeyPair {
  std::optional<StoredObjectInfo> left, right;
};
// Calls `visit` for each key of both, in the order of keys, until it says false. When a list turns out to be
// in another order `begin_again` is called, which waits for what was begun, and all keys come once more.
Result<void> VisitPairs(KeyStream* left, KeyStream* right, const std::function<void()>& begin_again,
                        const std::function<bool(KeyPair* pair)>& visit);

}  // namespace overcap
