// SPDX-License-Identifier: Apache-2.0
#include "stores/paged_listing.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace overcap {
namespace {

bool Before(const StoredObjectInfo& a, const StoredObjectInfo& b) {
  return a.key < b.key;
}

}  // namespace

void SortPage(StorePage* page) {
  if (std::is_sorted(page->objects.begin(), page->objects.end(), Before)) return;
  page->in_order = false;
  std::sort(page->objects.begin(), page->objects.end(), Before);
}

Result<StorePage> PagedListing::Ask() {
  const std::string skip_to = std::exchange(skip_to_, "");
  if (skip_to.empty() || !can_skip_) return store_.List(prefix_, page_.next);
  OC_TRY(page, store_.List(prefix_, skip_to));
  if (page.objects.empty() || page.objects.front().key > skip_to) return page;
  can_skip_ = false;
  return store_.List(prefix_, page_.next);
}

Result<StorePage*> PagedListing::Next() {
  if (begun_ && page_.next.empty()) return nullptr;
  OC_TRY(page, Ask());
  begun_ = true;
  page_ = std::move(page);
  if (page_.objects.empty()) return &page_;
  const std::string& front = page_.objects.front().key;
  if (first_ == front)
    return Fail(ErrorCode::kUnavailable,
                StrCat("the service of ", Quoted(store_.Location(), 500),
                       " does not go on with its list but begins it again"),
                "try again when nothing else changes what is there");
  const bool only = !first_ && page_.next.empty();
  in_order_ = in_order_ && (page_.in_order || only) && (!first_ || front > last_);
  if (!first_) first_ = front;
  last_ = std::max(last_, page_.objects.back().key);
  return &page_;
}

Result<StorePage> PagedListing::Whole() {
  StorePage whole;
  while (true) {
    OC_TRY(page, Next());
    if (page == nullptr) break;
    whole.left_out += page->left_out;
    std::move(page->objects.begin(), page->objects.end(), std::back_inserter(whole.objects));
  }
  SortPage(&whole);
  return whole;
}

}  // namespace overcap
