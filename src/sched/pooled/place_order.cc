// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/place_order.h"

#include <algorithm>
#include <array>

namespace overcap::pooled {
namespace {

constexpr size_t kFewPlaces = 512;
constexpr int kDigitBits = 11;
constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;

struct Key {
  uint64_t behind = 0;  // the best by so much
  uint32_t at = 0;
};

// By one digit; equal ones stay in their order.
void SortByDigit(int shift, const std::vector<Key>& keys, std::vector<Key>* sorted) {
  std::array<uint32_t, kDigits + 1> begin{};
  for (const Key& key : keys) ++begin[(key.behind >> shift & (kDigits - 1)) + 1];
  for (size_t digit = 0; digit < kDigits; ++digit) begin[digit + 1] += begin[digit];
  for (const Key& key : keys) (*sorted)[begin[key.behind >> shift & (kDigits - 1)]++] = key;
}

}  // namespace

void SortPlaces(std::vector<Place>* places) {
  if (places->size() < kFewPlaces) return std::sort(places->begin(), places->end());
  const auto higher = [](const Place& a, const Place& b) { return a.score < b.score; };
  const int64_t best = std::max_element(places->begin(), places->end(), higher)->score;
  std::vector<Key> keys(places->size()), other(places->size());
  uint64_t last = 0;
  for (size_t at = 0; at < keys.size(); ++at) {
    keys[at] = {static_cast<uint64_t>(best) - static_cast<uint64_t>((*places)[at].score),
                static_cast<uint32_t>(at)};
    last = std::max(last, keys[at].behind);
  }
  for (int shift = 0; shift < 64 && last >> shift != 0; shift += kDigitBits) {
    SortByDigit(shift, keys, &other);
    keys.swap(other);
  }
  std::vector<Place> sorted;
  sorted.reserve(places->size());
  for (const Key& key : keys) sorted.push_back((*places)[key.at]);
  for (auto first = sorted.begin(); first != sorted.end();) {  // of equal scores
    const auto end =
        std::find_if(first, sorted.end(), [&](const Place& one) { return one.score != first->score; });
    if (end - first > 1) std::sort(first, end);
    first = end;
  }
  places->swap(sorted);
}

}  // namespace overcap::pooled
