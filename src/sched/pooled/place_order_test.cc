// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/place_order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace overcap::pooled {
namespace {

TEST(PlaceOrder, ManyRanksComeOutAsStableSortPutsThem) {
  std::mt19937_64 random(7);
  for (const int64_t range :
       {int64_t{1}, int64_t{40}, int64_t{2'000'000'000}, int64_t{4'000'000'000'000'000'000}}) {
    std::vector<Rank> ranks(3000), wanted;
    for (uint32_t line = 0; line < ranks.size(); ++line) {
      ranks[line].score = static_cast<int64_t>(random() % static_cast<uint64_t>(range)) - range / 2;
      ranks[line].line = line;
    }
    wanted = ranks;
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const Rank& a, const Rank& b) { return a.score > b.score; });
    SortByScore(&ranks);
    for (size_t at = 0; at < ranks.size(); ++at) ASSERT_EQ(ranks[at].line, wanted[at].line) << range;
  }
}

}  // namespace
}  // namespace overcap::pooled
