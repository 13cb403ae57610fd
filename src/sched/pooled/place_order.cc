// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/place_order.h"

#include <algorithm>
#include <array>

namespace overcap::pooled {
namespace {

constexpr size_t kFewRanks = 512;
constexpr int kDigitBits = 11;
constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;

bool Higher(const Rank& a, const Rank& b) {
  return a.score > b.score;
}

}  // namespace

void SortByScore(std::vector<Rank>* ranks) {
  if (ranks->size() < kFewRanks) return std::stable_sort(ranks->begin(), ranks->end(), Higher);
  const auto [best, worst] = std::minmax_element(ranks->begin(), ranks->end(), Higher);
  const auto top = static_cast<uint64_t>(best->score);
  const uint64_t range = top - static_cast<uint64_t>(worst->score);
  std::vector<Rank> other(ranks->size());
  for (int shift = 0; shift < 64 && range >> shift != 0; shift += kDigitBits) {
    const auto digit = [&](const Rank& rank) {
      return (top - static_cast<uint64_t>(rank.score)) >> shift & (kDigits - 1);
    };
    std::array<uint32_t, kDigits + 1> begin{};
    for (const Rank& rank : *ranks) ++begin[digit(rank) + 1];
    for (size_t i = 0; i < kDigits; ++i) begin[i + 1] += begin[i];
    for (const Rank& rank : *ranks) other[begin[digit(rank)]++] = rank;
    ranks->swap(other);
  }
}

}  // namespace overcap::pooled
