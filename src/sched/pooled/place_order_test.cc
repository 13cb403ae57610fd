// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/place_order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace overcap::pooled {
namespace {

TEST(PlaceOrder, ManyPlacesComeOutAsStdSortPutsThem) {
  std::mt19937_64 random(7);
  for (const int64_t range :
       {int64_t{1}, int64_t{40}, int64_t{2'000'000'000}, int64_t{4'000'000'000'000'000'000}}) {
    std::vector<Place> places(3000), wanted;
    for (uint32_t line = 0; line < places.size(); ++line) {
      places[line].score = static_cast<int64_t>(random() % static_cast<uint64_t>(range)) - range / 2;
      places[line].submit_s = static_cast<int64_t>(random() % 3);
      places[line].seq = random() % 5;
      places[line].line = line;
    }
    wanted = places;
    std::sort(wanted.begin(), wanted.end());
    SortPlaces(&places);
    for (size_t at = 0; at < places.size(); ++at) ASSERT_EQ(places[at].line, wanted[at].line) << range;
  }
}

}  // namespace
}  // namespace overcap::pooled
