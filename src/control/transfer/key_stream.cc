// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/key_stream.h"

namespace overcap {

Result<const StoredObjectInfo*> KeyStream::Peek() {
  while (at_ == objects_.size()) {
    if (whole_) return nullptr;
    OC_TRY(page, listing_->Next());
    if (page == nullptr) return nullptr;
    objects_ = std::move(page->objects);
    at_ = 0;
    left_out_ += page->left_out;
  }
  return &objects_[at_];
}

Result<void> KeyStream::BeginAgain() {
  whole_ = whole_ || !in_order();
  listing_.emplace(store_, prefix_);
  objects_.clear();
  at_ = 0;
  left_out_ = 0;
  if (!whole_) return {};
  OC_TRY(page, listing_->Whole());
  objects_ = std::move(page.objects);
  left_out_ = page.left_out;
  return {};
}

namespace {

// The next of both in the order of keys; nullopt at the end of both.
Result<std::optional<KeyPair>> NextPair(KeyStream* left, KeyStream* right) {
  OC_TRY(a, left->Peek());
  OC_TRY(b, right->Peek());
  if (a == nullptr && b == nullptr) return std::nullopt;
  KeyPair pair;
  const bool take_a = a != nullptr && (b == nullptr || a->key <= b->key);
  const bool take_b = b != nullptr && (a == nullptr || b->key <= a->key);
  if (take_a) pair.left = *a;
  if (take_b) pair.right = *b;
  if (take_a) left->Pop();
  if (take_b) right->Pop();
  return pair;
}

}  // namespace

Result<void> VisitPairs(KeyStream* left, KeyStream* right, const std::function<void()>& begin_again,
                        const std::function<bool(KeyPair* pair)>& visit) {
  while (true) {
    OC_TRY(pair, NextPair(left, right));
    if (!left->in_order() || !right->in_order()) {
      begin_again();
      OC_TRY_VOID(left->BeginAgain());
      OC_TRY_VOID(right->BeginAgain());
    } else if (!pair || !visit(&*pair)) {
      return {};
    }
  }
}

}  // namespace overcap
