// SPDX-License-Identifier: Apache-2.0
#include "daemon/journal.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/fake_files.h"

namespace overcap {
namespace {

constexpr char kPath[] = "/state/journal";

Event Submitted(const std::string& id) {
  Event event;
  event.kind = EventKind::kSubmitted;
  event.time_us = 5;
  event.id = id;
  event.spec.id = id;
  event.spec.command = {"echo", "a  b\n'\"", "\xff\xfe"};
  return event;
}

Event Removed(const std::string& id) {
  Event event;
  event.kind = EventKind::kRemoved;
  event.id = id;
  return event;
}

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    (void)files_.MakeFolders("/state");
    (void)files_.SyncFolder("/");
  }

  Result<void> Reopen() {
    replayed_.clear();
    journal_ = std::make_unique<Journal>(files_, kPath);
    return journal_->Open([this](Event event) -> Result<void> {
      replayed_.push_back(std::move(event));
      return {};
    });
  }
  void WriteRaw(const std::string& text) { ASSERT_TRUE(files_.WriteAtomic(kPath, text, true)); }
  std::string Raw() { return *files_.Read(kPath); }

  FakeFiles files_{1};
  std::unique_ptr<Journal> journal_;
  std::vector<Event> replayed_;
};

TEST_F(JournalTest, WhatWasCommittedIsReadBackByteForByte) {
  ASSERT_TRUE(Reopen());
  const std::vector<Event> events = {Submitted("u_1_00000001"), Submitted("u_1_00000002"),
                                     Removed("u_1_00000001")};
  ASSERT_TRUE(journal_->Append(events));
  ASSERT_TRUE(journal_->Commit());
  files_.Crash(CrashKind::kPowerCut);
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(replayed_, events);
  EXPECT_FALSE(journal_->cut_torn_record());
}

TEST_F(JournalTest, ATornLastRecordIsCutOffAtEveryLength) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000001"), Submitted("u_1_00000002")}));
  ASSERT_TRUE(journal_->Commit());
  const std::string whole = Raw();
  const size_t second = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t length = second + 1; length < whole.size(); ++length) {
    WriteRaw(whole.substr(0, length));
    ASSERT_TRUE(Reopen()) << length;
    EXPECT_EQ(replayed_.size(), 1u);
    EXPECT_TRUE(journal_->cut_torn_record());
    ASSERT_TRUE(journal_->Append({Removed("u_1_00000001")}));
    ASSERT_TRUE(Reopen()) << "appending after the cut must give a whole journal";
    EXPECT_EQ(replayed_.size(), 2u);
  }
}

TEST_F(JournalTest, AFlippedByteAnywhereIsRefusedWithItsLine) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000001"), Removed("u_1_00000001")}));
  ASSERT_TRUE(journal_->Commit());
  const std::string whole = Raw();
  for (size_t at = 0; at + 1 < whole.size(); ++at) {
    if (whole[at] == '\n') continue;
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    if (damaged[at] == '\n') continue;
    WriteRaw(damaged);
    const auto opened = Reopen();
    ASSERT_FALSE(opened) << at;
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(opened.error().message.find("line "), std::string::npos);
    EXPECT_NE(opened.error().hint.find("overcap daemon recover"), std::string::npos);
    EXPECT_EQ(Raw(), damaged) << "a refused journal is left as it is";
  }
}

TEST_F(JournalTest, ATailOfNulBytesIsATornWrite) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000001")}));
  WriteRaw(Raw() + std::string(300, '\0'));
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(replayed_.size(), 1u);
}

TEST_F(JournalTest, AFullDiskLeavesNothingHalfWritten) {
  files_.RefuseReserves();
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000001")}));
  const std::string before = Raw();
  files_.SetFreeBytes(40);
  const auto appended = journal_->Append({Submitted("u_1_00000002")});
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(Raw(), before);
  files_.SetFreeBytes(std::nullopt);
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000003")}));
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(replayed_.size(), 2u);
}

TEST_F(JournalTest, ARecordOfANewerVersionIsNotSkipped) {
  WriteRaw("00000000 {\"e\":\"journal\",\"version\":1}\n");
  EXPECT_FALSE(Reopen()) << "the checksum is wrong";
  ASSERT_TRUE(files_.Remove(kPath));
  ASSERT_TRUE(Reopen());
  Event event;
  event.kind = EventKind::kJournal;
  event.version = 2;
  WriteRaw(Journal::EncodeRecord(event));
  EXPECT_FALSE(Reopen());
}

TEST_F(JournalTest, SalvageKeepsEveryGoodRecordAndNamesTheBadLines) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(
      journal_->Append({Submitted("u_1_00000001"), Submitted("u_1_00000002"), Submitted("u_1_00000003")}));
  std::string text = Raw();
  text[text.find("u_1_00000002")] = 'x';
  const auto salvaged = SalvageJournal(text);
  ASSERT_TRUE(salvaged);
  ASSERT_EQ(salvaged->bad_lines.size(), 1U);
  EXPECT_EQ(salvaged->bad_lines[0].first, 3);
  ASSERT_EQ(salvaged->records.size(), 2u);
  EXPECT_EQ(salvaged->records[1].event.id, "u_1_00000003");
  EXPECT_TRUE(salvaged->damaged());
}

TEST_F(JournalTest, AWholeLineThatIsLostDoubledOrSwappedIsRefusedAndSalvagePutsTheRestInOrder) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(
      journal_->Append({Submitted("u_1_00000001"), Submitted("u_1_00000002"), Submitted("u_1_00000003")}));
  const std::vector<std::string> lines = Split(Raw(), '\n');
  const std::vector<std::vector<size_t>> damages = {{0, 1, 3}, {0, 1, 2, 2, 3}, {0, 2, 1, 3},
                                                    {1, 2, 3}, {0, 0, 1, 2, 3}, {1, 0, 2, 3}};
  for (const std::vector<size_t>& order : damages) {
    std::string text;
    for (const size_t line : order) text += lines[line] + "\n";
    WriteRaw(text);
    EXPECT_FALSE(Reopen());
    const auto salvaged = SalvageJournal(text);
    ASSERT_TRUE(salvaged);
    EXPECT_TRUE(salvaged->damaged());
    std::vector<std::string> ids;
    for (const auto& record : salvaged->records) ids.push_back(record.event.id);
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    EXPECT_EQ(ids.size(), salvaged->missing > 0 ? 2U : 3U);
  }
}

TEST_F(JournalTest, RecordsOfAnOlderProgramHaveNoNumberAndAreReadAsBefore) {
  Event version;
  version.kind = EventKind::kJournal;
  WriteRaw(Journal::EncodeRecord(version) + Journal::EncodeRecord(Submitted("u_1_00000001")));
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000002")}));
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(replayed_.size(), 2U);
  EXPECT_NE(Raw().find("{\"n\":3,\"e\":\"submitted\""), std::string::npos);
  EXPECT_FALSE(SalvageJournal(Raw())->damaged());
}

TEST_F(JournalTest, ARewriteIsAllOrNothingThroughAPowerCut) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(
      journal_->Append({Submitted("u_1_00000001"), Removed("u_1_00000001"), Submitted("u_1_00000002")}));
  ASSERT_TRUE(journal_->Commit());
  ASSERT_TRUE(journal_->Rewrite({Submitted("u_1_00000002")}));
  files_.Crash(CrashKind::kPowerCut);
  ASSERT_TRUE(Reopen());
  ASSERT_EQ(replayed_.size(), 1u);
  EXPECT_EQ(replayed_[0].id, "u_1_00000002");
}

TEST_F(JournalTest, OnAFullDiskTheReserveTakesWhatEndsAndRefusesWhatIsNew) {
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000001")}));
  files_.SetFreeBytes(0);
  Event note = Submitted("u_1_00000002");
  note.spec.command = {std::string(600 << 10, 'x')};  // half of the reserve is for what ends
  const auto refused = journal_->Append({note});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(journal_->problem());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(journal_->Append({Removed("u_1_00000001")}));
  ASSERT_TRUE(journal_->Commit());
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(replayed_.size(), 1001u);
  files_.SetFreeBytes(std::nullopt);
  journal_->FillReserve();
  EXPECT_FALSE(journal_->problem());
  EXPECT_TRUE(journal_->Append({note}));
}

TEST_F(JournalTest, OnAFullDiskAShortJournalIsRewrittenInThePlaceOfTheReserve) {
  ASSERT_TRUE(Reopen());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(journal_->Append({Submitted(StrCat("u_1_", i))}));
  ASSERT_TRUE(journal_->Commit());
  files_.SetFreeBytes(0);
  ASSERT_TRUE(journal_->Rewrite({Submitted("u_1_00000001")}));
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(replayed_.size(), 1u);
}

TEST_F(JournalTest, WhereNothingCanBeSetAsideTheJournalGoesOnWithout) {
  files_.RefuseReserves();
  ASSERT_TRUE(Reopen());
  ASSERT_TRUE(journal_->Append({Submitted("u_1_00000001")}));
  files_.SetFreeBytes(10);
  EXPECT_FALSE(journal_->Append({Removed("u_1_00000001")}));
  EXPECT_TRUE(journal_->problem());
  files_.SetFreeBytes(std::nullopt);
  EXPECT_TRUE(journal_->Append({Removed("u_1_00000001")}));
  EXPECT_FALSE(journal_->problem());
}

}  // namespace
}  // namespace overcap
