// SPDX-License-Identifier: Apache-2.0
#include "daemon/recover.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "daemon/job_table.h"
#include "daemon/journal.h"
#include "model/agent_report.h"
#include "sys/fake_files.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr char kRoot[] = "/state";
constexpr char kJournal[] = "/state/journal";
constexpr int64_t kNow = 1'700'000'900'000'000;

Event Of(EventKind kind, const std::string& id, int64_t time_us) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.time_us = time_us;
  return event;
}

JobSpec SpecOf(const std::string& id) {
  JobSpec spec;
  spec.id = id;
  spec.user = "61001";
  spec.cluster = "local";
  spec.workdir = "/data";
  spec.command = {"train"};
  spec.submitted_us = 1'700'000'000'000'000;
  return spec;
}

class RecoverTest : public testing::Test {
 protected:
  RecoverTest() {
    (void)files_.MakeFolders(kRoot);
    (void)files_.SyncFolder("/");
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(files_.MakeFolders(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(files_.WriteAtomic(path, text, true));
  }
  // A job's folder as the engine leaves it.
  void WriteFolder(const std::string& folder, const JobSpec& spec, const std::vector<Event>& events) {
    Write(folder + "/spec.json", SpecToJson(spec));
    std::string lines;
    for (const Event& event : events) lines += EventToJson(event, false) + "\n";
    Write(folder + "/events.jsonl", lines);
  }
  std::string Mend(bool system, const std::string& boot = "boot") {
    const auto mended = MendRoot(files_, kRoot, system, boot, kNow);
    EXPECT_TRUE(mended) << mended.error().message;
    table_ = {};
    Journal journal(files_, kJournal);
    EXPECT_TRUE(journal.Open([this](const Event& event) {
      return event.kind == EventKind::kMachine ? Result<void>() : table_.Apply(event);
    }));
    return mended ? *mended : "";
  }

  FakeFiles files_{1};
  JobTable table_;
};

TEST_F(RecoverTest, WhatAnEarlierRecoverWroteForEndedJobsIsMended) {
  const std::string id = "ann_1700000000_00000001";
  Event submitted = Of(EventKind::kSubmitted, id, 1);
  submitted.spec = SpecOf(id);
  Event state = Of(EventKind::kState, id, 9);
  state.ending.state = JobState::kFailed;
  state.progress.attempt = state.progress.next_slot = 1;
  state.progress.ended_us = 9;
  Event started = Of(EventKind::kStarted, id, 5);
  started.attempt = 1;
  std::string text = Journal::EncodeRecord(Of(EventKind::kJournal, "", 0));
  for (const Event& event : {submitted, state, started}) text += Journal::EncodeRecord(event);
  Write(kJournal, text);
  EXPECT_NE(Mend(false).find("line 4 is left out"), std::string::npos);
  EXPECT_EQ(table_.Find(id)->state, JobState::kFailed);
  EXPECT_EQ(table_.Find(id)->progress.ended_us, 9);
}

TEST_F(RecoverTest, AnAttemptThatOnlyItsClaimSpeaksOfIsLookedAtAndNotStartedAgain) {
  const std::string id = "ann_1700000000_00000001";
  WriteFolder("/state/jobs/" + id, SpecOf(id), {});
  Write("/state/jobs/" + id + "/attempt-1/agent-0.claim",
        ClaimToJson({7, 8, "boot", "agent", 0, 0, "", "gpu1/5d"}));
  Mend(false);
  const Job* job = table_.Find(id);
  ASSERT_NE(job, nullptr);
  ASSERT_EQ(job->slots.size(), 1U);
  EXPECT_EQ(job->slots[0].boot_id, "boot");
  EXPECT_EQ(job->slots[0].host, "gpu1/5d");
}

TEST_F(RecoverTest, AUsersFolderIsBelievedForThatUserAlone) {
  const std::string own = "61001_1700000000_00000001", waiting = "61001_1700000000_00000002";
  const std::string forged = "61001_1700000000_00000003", others = "ann_1700000000_00000004";
  Event ended = Of(EventKind::kEnded, own, 5);
  ended.ending.state = JobState::kSucceeded;
  JobSpec greedy = SpecOf(own);
  greedy.owner = {61001, 0, {0, 4}, {}};
  greedy.priority = 1000;
  WriteFolder("/state/users/61001/jobs/" + own, greedy, {ended});
  WriteFolder("/state/users/61001/jobs/" + waiting, SpecOf(waiting), {});
  JobSpec of_root = SpecOf(forged);
  of_root.owner.uid = 0;
  WriteFolder("/state/users/61001/jobs/" + forged, of_root, {});
  WriteFolder("/state/users/61001/jobs/" + others, SpecOf(others), {});
  const std::string told = Mend(true);
  ASSERT_NE(table_.Find(own), nullptr) << told;
  EXPECT_EQ(table_.Find(own)->state, JobState::kSucceeded);
  EXPECT_EQ(table_.Find(own)->progress.ended_us, 5);
  EXPECT_EQ(table_.Find(own)->spec.owner, (JobOwner{61001, 61001, {}, {}}));
  EXPECT_EQ(table_.Find(own)->spec.priority, 0);
  EXPECT_EQ(table_.Find(waiting)->state, JobState::kLost) << "its user may have changed it since";
  EXPECT_NE(told.find("overcap resubmit " + waiting), std::string::npos);
  EXPECT_EQ(table_.Find(forged), nullptr);
  EXPECT_EQ(table_.Find(others), nullptr);
  EXPECT_NE(told.find(others + "' is left out: it names another user"), std::string::npos);
}

TEST_F(RecoverTest, AJournalOfANewerProgramIsRefusedAndLeft) {
  Event version = Of(EventKind::kJournal, "", 0);
  version.version = 2;
  Write(kJournal, Journal::EncodeRecord(version));
  const auto mended = MendRoot(files_, kRoot, false, "", kNow);
  ASSERT_FALSE(mended);
  EXPECT_EQ(mended.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(*files_.Read(kJournal), Journal::EncodeRecord(version));
}

// Records with right checksums and any content, in any order: what is left is a journal that fits.
TEST_F(RecoverTest, AnyRecordsAtAllGiveAJournalThatFits) {
  SeededRandom random(1);
  constexpr EventKind kKinds[] = {EventKind::kSubmitted, EventKind::kHeld,   EventKind::kReleased,
                                  EventKind::kStarted,   EventKind::kCancel, EventKind::kSlotEnded,
                                  EventKind::kRequeued,  EventKind::kEnded,  EventKind::kRemoved,
                                  EventKind::kPreempt,   EventKind::kState,  EventKind::kMachine};
  for (int round = 0; round < 300; ++round) {
    std::string text = Journal::EncodeRecord(Of(EventKind::kJournal, "", 0));
    for (int line = 2; line < 60; ++line) {
      Event event = Of(kKinds[random.Below(12)], StrCat("ann_1700000000_0000000", random.Below(4)), line);
      event.spec = SpecOf(event.id);
      if (random.Below(2) == 0) event.spec.array = *ParseArraySpec("0-3");
      event.attempt = static_cast<int>(random.Below(4)) - 1;
      event.slot = static_cast<int>(random.Below(3)) - 1;
      event.gpus = {static_cast<int>(random.Below(1000)) - 500};
      event.ending.state = static_cast<JobState>(random.Below(9));
      event.tasks.lost = {static_cast<int>(random.Below(1000)) - 500};
      event.progress.attempt = static_cast<int>(random.Below(5)) - 1;
      text += Journal::EncodeRecord(event, random.Below(3) == 0 ? line : 0);
    }
    for (uint64_t i = random.Below(6); i > 0; --i)
      text[random.Below(text.size())] = static_cast<char>(random.Below(256));
    Write(kJournal, text);
    const auto salvaged = SalvageJournal(text);
    if (!salvaged) continue;
    Mend(false);
  }
}

}  // namespace
}  // namespace overcap
