// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/key_stream.h"

namespace overcap {

Result<const StoredObjectInfo*> KeyStream::Peek() {
  while (at_ == page_.objects.size()) {
    if (begun_ && page_.next.empty()) return nullptr;
    OC_TRY(page, store_.List(prefix_, page_.next));
    page_ = std::move(page);
    at_ = 0;
    begun_ = true;
    left_out_ += page_.left_out;
  }
  return &page_.objects[at_];
}

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

}  // namespace overcap
