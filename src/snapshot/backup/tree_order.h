// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "snapshot/backup/scan.h"

namespace overcap {

// The entries of a scan in the order of a tree, the root first; what is gone is left out with all below it.
// As deep as it goes, without recursion.
class TreeOrder {
 public:
  explicit TreeOrder(Scan* scan) : scan_(scan) {}

  struct Item {
    ScannedFolder* folder = nullptr;  // that it is in; nullptr: the root itself
    ScannedEntry* entry = nullptr;    // nullptr: that was the last
    const ScannedLink* link = nullptr;
  };
  Item Next() {
    if (!begun_) {
      begun_ = true;
      open_.push_back({&scan_->top(), 0, 0});
      return {nullptr, &scan_->root, nullptr};
    }
    while (!open_.empty()) {
      Place& place = open_.back();
      if (place.entry == place.folder->entries.size()) {
        open_.pop_back();
        continue;
      }
      const size_t number = place.entry++;
      const std::vector<ScannedLink>& links = place.folder->links;
      const ScannedLink* link = nullptr;
      if (place.link < links.size() && links[place.link].entry == number) link = &links[place.link++];
      ScannedEntry& entry = place.folder->entries[number];
      if (entry.fate == EntryFate::kGone) continue;
      const Item item{place.folder, &entry, link};
      if (entry.below != nullptr) open_.push_back({entry.below, 0, 0});
      return item;
    }
    return {};
  }

 private:
  struct Place {
    ScannedFolder* folder;
    size_t entry;
    size_t link;
  };

  Scan* scan_;
  std::vector<Place> open_;
  bool begun_ = false;
};

}  // namespace overcap
