// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "stores/store.h"

namespace overcap {

// Puts the objects of a page into byte order; in_order says whether they were.
void SortPage(StorePage* page);

// A listing of a store, page after page.
class PagedListing {
 public:
  // The store must outlive it.
  explicit PagedListing(const Store& store, std::string prefix = "")
      : store_(store), prefix_(std::move(prefix)) {}

  // The next page, nullptr at the end; valid until the next call, its objects may be taken. kUnavailable when
  // the service begins the list again instead of going on: it would never end.
  Result<StorePage*> Next();
  // The next page leaves out what is before `key`, unless the service can only go on where a page ended.
  void SkipTo(std::string key) { skip_to_ = std::move(key); }
  // False once the service turns out to have an order of its own: keys of one page may belong before those of
  // an earlier one.
  bool in_order() const { return in_order_; }
  // All pages that are left, as one in byte order.
  Result<StorePage> Whole();

 private:
  Result<StorePage> Ask();

  const Store& store_;
  const std::string prefix_;
  StorePage page_;
  bool begun_ = false, in_order_ = true, can_skip_ = true;
  std::string skip_to_;
  std::optional<std::string> first_;  // of all keys so far
  std::string last_;
};

}  // namespace overcap
