// SPDX-License-Identifier: Apache-2.0
#include "model/event.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

Event Full(EventKind kind) {
  Event event;
  event.kind = kind;
  event.time_us = 1'700'000'000'000'001;
  event.id = "ann_1700000000_00000001";
  return event;
}

Ending SomeEnding() {
  return {JobState::kFailed, 139, 11, 3, "killed"};
}

std::vector<Event> OneOfEachKind() {
  Event submitted = Full(EventKind::kSubmitted);
  submitted.spec.id = submitted.id;
  submitted.spec.command = {"python", "train.py", ",\"spec\":", "a\nb", "\xff"};
  Event started = Full(EventKind::kStarted);
  started.attempt = 2, started.slot = 1, started.gpus = {0, 3}, started.cpus = {1}, started.retry_tasks = {7},
  started.boot_id = "b", started.host = "gpu1/5d", started.partition = "overcap";
  Event preempt = Full(EventKind::kPreempt);
  preempt.attempt = 2, preempt.slot = 1, preempt.by = "ann_1700000000_00000002",
  preempt.stop_us = 1'700'000'000'000'009;
  Event cancel = Full(EventKind::kCancel);
  cancel.reason = "no \"more\"";
  Event slot_ended = Full(EventKind::kSlotEnded);
  slot_ended.attempt = 2, slot_ended.slot = 1, slot_ended.ending = SomeEnding();
  slot_ended.tasks = {5, {{6, 1}}, {8}};
  Event requeued = Full(EventKind::kRequeued);
  requeued.reason = "again";
  Event ended = Full(EventKind::kEnded);
  ended.ending = SomeEnding();
  Event state = Full(EventKind::kState);
  state.ending = SomeEnding(), state.reason = "killed";
  state.progress = {2, 1, 1, 4, true, 3, "bob_1", "short", 77, 99}, state.gpus = {1, 3};
  Event machine;
  machine.kind = EventKind::kMachine;
  machine.machine = {"host", 4, 1 << 30, {{0, "a40", "", 5}}, true};
  return {machine,
          submitted,
          Full(EventKind::kHeld),
          Full(EventKind::kReleased),
          started,
          cancel,
          slot_ended,
          preempt,
          requeued,
          ended,
          Full(EventKind::kRemoved),
          state};
}

TEST(EventTest, EveryKindIsReadBackAsItWasWritten) {
  for (const Event& event : OneOfEachKind()) {
    const std::string json = EventToJson(event);
    EXPECT_EQ(json.find('\n'), std::string::npos) << "a record is one line";
    const auto read = EventFromJson(json);
    ASSERT_TRUE(read) << json << ": " << read.error().message;
    EXPECT_EQ(*read, event) << json;
  }
}

TEST(EventTest, EventsOfAJobFolderHaveNoId) {
  EXPECT_EQ(EventToJson(Full(EventKind::kHeld), false), "{\"e\":\"held\",\"t\":1700000000000001}");
}

TEST(EventTest, AnUnknownKindIsRefusedAndSaysWhatToDo) {
  const auto read = EventFromJson("{\"e\":\"teleported\",\"t\":1,\"id\":\"x\"}");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(read.error().hint.empty());
}

TEST(EventTest, NoTextThatIsCutOffOrChangedMakesItCrash) {
  for (const Event& event : OneOfEachKind()) {
    const std::string json = EventToJson(event);
    for (size_t length = 0; length < json.size(); ++length)
      EXPECT_FALSE(EventFromJson(json.substr(0, length)));
    for (size_t at = 0; at < json.size(); ++at) {
      std::string changed = json;
      changed[at] = static_cast<char>(changed[at] ^ 0x15);
      (void)EventFromJson(changed);  // may be right or wrong, must come back
    }
  }
}

}  // namespace
}  // namespace overcap
