// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/digest_table.h"

#include <gtest/gtest.h>
#include <unordered_map>

#include "sys/random.h"

namespace overcap {
namespace {

struct Numbered {
  Digest id;
  int number = 0;
};

Digest DigestOf(uint64_t number) {
  return Sha256Of(std::to_string(number));
}

TEST(DigestTable, FindsWhatWasAddedAndNothingElse) {
  DigestTable<Numbered> table;
  EXPECT_EQ(table.Find(DigestOf(1)), DigestTable<Numbered>::kNone);
  for (int i = 0; i < 5'000; ++i) table.Add({DigestOf(static_cast<uint64_t>(i)), i});
  for (int i = 0; i < 5'000; ++i) {
    const uint32_t found = table.Find(DigestOf(static_cast<uint64_t>(i)));
    ASSERT_NE(found, DigestTable<Numbered>::kNone);
    EXPECT_EQ(table[found].number, i);
  }
  EXPECT_EQ(table.Find(DigestOf(5'000)), DigestTable<Numbered>::kNone);
}

TEST(DigestTable, OfSeveralEntriesWithOneIdOneIsLinked) {
  DigestTable<Numbered> table;
  EXPECT_EQ(table.Add({DigestOf(7), 1}), DigestTable<Numbered>::kNone);
  EXPECT_EQ(table.Add({DigestOf(7), 2}), 0u);
  EXPECT_EQ(table[table.Find(DigestOf(7))].number, 1);
  table.Link(1);
  EXPECT_EQ(table[table.Find(DigestOf(7))].number, 2);
  table.Reserve(10'000);
  EXPECT_EQ(table[table.Find(DigestOf(7))].number, 2) << "also after it grew";
  EXPECT_EQ(table.size(), 2u);
}

TEST(DigestTable, IdsThatShareTheirSlotAreKeptApart) {
  DigestTable<Numbered> table;
  Digest a, b;
  a.bytes[0] = 1;
  b.bytes[0] = 2;
  table.Add({a, 1});
  table.Add({b, 2});
  EXPECT_EQ(table[table.Find(a)].number, 1);
  EXPECT_EQ(table[table.Find(b)].number, 2);
}

}  // namespace
}  // namespace overcap
