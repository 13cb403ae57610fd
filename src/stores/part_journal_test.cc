// SPDX-License-Identifier: Apache-2.0
#include "stores/part_journal.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(PartJournalTest, GivesBackWhatWasWritten) {
  const PartJournal journal{25, 10};
  const std::string text = journal.Head() + PartJournal::LineOf(2, "abcde") + PartJournal::LineOf(0, "x");
  size_t good = 0;
  const auto lines = journal.Parse(text, &good);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(good, text.size());
  EXPECT_EQ(lines[0].part, 2);
  EXPECT_EQ(lines[0].crc, PartJournal::CrcText("abcde"));
  EXPECT_EQ(lines[1].part, 0);
  EXPECT_EQ(journal.BytesOf(0), 10);
  EXPECT_EQ(journal.BytesOf(2), 5);
}

TEST(PartJournalTest, IsReadAsFarAsItIsOne) {
  const PartJournal journal{25, 10};
  const std::string well = journal.Head() + "1 00000000\n";
  for (const char* rest : {"", "0 1234", "3 00000000\n", "-1 00000000\n", "x 00000000\n", "0\n", "\n",
                           "99999999999999999999 0\n"}) {
    size_t good = 0;
    EXPECT_EQ(journal.Parse(well + rest, &good).size(), 1u) << rest;
    EXPECT_EQ(good, well.size()) << rest;
  }
  size_t good = 7;
  EXPECT_TRUE(PartJournal({26, 10}).Parse(well, &good).empty());
  EXPECT_EQ(good, 0u);
  EXPECT_TRUE(PartJournal({25, 5}).Parse(well, &good).empty());
}

TEST(PartJournalTest, NamesAreOfTheIdentityAlone) {
  EXPECT_EQ(PartialName("a"), ".overcap-part-ca978112ca1bbdca");
  EXPECT_NE(PartialName("a"), PartialName("b"));
}

}  // namespace
}  // namespace overcap
