// SPDX-License-Identifier: Apache-2.0
#include "daemon/asker.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000;

Asker User(const std::string& name, int64_t uid) {
  Asker asker;
  asker.only_user = false;
  asker.user = name;
  asker.owner = {uid, uid, {}, {{"nofile", 10, 20}}};
  return asker;
}

Policy VisionOfCarl() {
  Policy policy;
  policy.labs = {{.name = "vision", .members = {"ann", "bob"}, .admins = {"carl"}}};
  policy.admins = {"ops"};
  return policy;
}

JobSpec Spec(const std::string& id) {
  JobSpec spec;
  spec.id = id;
  spec.command = {"true"};
  spec.workdir = "/tmp";
  return spec;
}

// A table with one job of ann's, in lab vision.
struct World {
  World() {
    Event event;
    event.kind = EventKind::kSubmitted;
    event.id = "ann_1_00000001";
    event.spec = Spec(event.id);
    event.spec.user = "ann";
    event.spec.lab = "vision";
    event.spec.owner = ann.owner;
    event.spec.name = "secret";
    event.spec.submitted_us = 5;
    EXPECT_TRUE(table.Apply(event));
  }
  const Job& job() const { return *table.Find("ann_1_00000001"); }
  Result<JobSpec> Stamp(const JobSpec& spec, const Asker& asker, const Policy* under = nullptr) const {
    return StampSpec(spec, asker, under, table, kNow);
  }
  ErrorCode Refusal(const JobSpec& spec, const Asker& asker, const Policy* under = nullptr) const {
    const auto stamped = Stamp(spec, asker, under);
    return stamped ? ErrorCode::kInternal : stamped.error().code;
  }

  Asker ann = User("ann", 1001), bob = User("bob", 1002), carl = User("carl", 1003), ops = User("ops", 1004),
        root = User("root", 0);
  Policy policy = VisionOfCarl();
  JobTable table;
};

TEST(Asker, OwnersAndAdministratorsSeeEverythingOthersDoNot) {
  const World world;
  EXPECT_TRUE(MaySee(world.ann, world.job(), &world.policy));
  EXPECT_TRUE(MaySee(world.root, world.job(), nullptr));
  EXPECT_TRUE(MaySee(world.ops, world.job(), &world.policy));
  EXPECT_FALSE(MaySee(world.ops, world.job(), nullptr));
  EXPECT_FALSE(MaySee(world.bob, world.job(), &world.policy));
  EXPECT_FALSE(MaySee(world.carl, world.job(), &world.policy));
}

TEST(Asker, AdministratorsOfTheLabMayStopButNotRemove) {
  const World world;
  EXPECT_TRUE(CheckMayStop(world.carl, world.job(), &world.policy, "stopped"));
  EXPECT_FALSE(CheckMayStop(world.carl, world.job(), nullptr, "stopped"));
  EXPECT_FALSE(CheckMayRemove(world.carl, world.job()));
  EXPECT_FALSE(CheckMayStop(world.bob, world.job(), &world.policy, "stopped"));
  EXPECT_FALSE(CheckMayRemove(world.ops, world.job())) << "nor an administrator of the policy";
}

TEST(Asker, ANameIsNoProofOfAnything) {
  const World world;
  const Asker impostor = User("ann", 1009);  // of that name, with another number
  EXPECT_FALSE(MaySee(impostor, world.job(), &world.policy));
  EXPECT_FALSE(CheckMayStop(impostor, world.job(), &world.policy, "held"));
}

TEST(Asker, OnlyRootRulesTheEngine) {
  const World world;
  EXPECT_TRUE(CheckMayRuleEngine(world.root, "stop"));
  EXPECT_FALSE(CheckMayRuleEngine(world.ops, "stop"));
  EXPECT_TRUE(CheckMayRuleEngine(Asker(), "stop"));
}

TEST(Asker, WhoItIsForIsTheEnginesToSay) {
  const World world;
  JobSpec forged = Spec("bob_1_00000002");
  forged.user = "ann";
  forged.lab = "theirs";
  forged.owner = {0, 0, {0}, {}};
  forged.submitted_us = 1;
  const auto stamped = world.Stamp(forged, world.bob);
  ASSERT_TRUE(stamped);
  EXPECT_EQ(stamped->user, "bob");
  EXPECT_EQ(stamped->lab, "");
  EXPECT_EQ(stamped->owner, world.bob.owner);
  EXPECT_EQ(stamped->submitted_us, kNow);
  EXPECT_EQ(world.Stamp(forged, world.bob, &world.policy)->lab, "vision");
}

TEST(Asker, TheEngineOfOneUserLeavesTheSpecAsItIs) {
  const World world;
  JobSpec spec = Spec("x_1_00000002");
  spec.user = "x";
  spec.priority = 9;
  spec.submitted_us = 7;
  EXPECT_EQ(*world.Stamp(spec, Asker()), spec);
}

TEST(Asker, IdsPrioritiesAndLinksOfOthersAreDenied) {
  const World world;
  EXPECT_EQ(world.Refusal(Spec("ann_1_00000002"), world.bob), ErrorCode::kDenied);
  EXPECT_EQ(world.Refusal(Spec("bo_1_00000002"), world.bob), ErrorCode::kDenied);
  JobSpec spec = Spec("bob_1_00000002");
  spec.priority = 1;
  EXPECT_EQ(world.Refusal(spec, world.bob), ErrorCode::kDenied);
  spec.priority = -1;
  EXPECT_TRUE(world.Stamp(spec, world.bob));
  spec.after = {{"ann_1_00000001", true}};
  EXPECT_EQ(world.Refusal(spec, world.bob), ErrorCode::kDenied);
  spec.after.clear();
  spec.replaces = "ann_1_00000001";
  EXPECT_EQ(world.Refusal(spec, world.bob), ErrorCode::kDenied);
  spec.replaces.clear();
  spec.resubmit_of = "ann_1_00000001";
  EXPECT_EQ(world.Refusal(spec, world.bob), ErrorCode::kDenied);
}

TEST(Asker, TheSameAgainIsAsItWasTakenTheFirstTime) {
  const World world;
  Asker later = world.ann;
  later.owner.limits = {};
  const auto again = world.Stamp(Spec("ann_1_00000001"), later, &world.policy);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->owner, world.ann.owner);
  EXPECT_EQ(again->submitted_us, 5);
}

TEST(Asker, TheSameAgainIsTakenThoughItsUserHasLeftTheLab) {
  World world;
  world.policy.labs[0].members = {"bob"};
  EXPECT_FALSE(world.Stamp(Spec("ann_1_00000002"), world.ann, &world.policy));
  const auto again = world.Stamp(Spec("ann_1_00000001"), world.ann, &world.policy);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->lab, "vision");
}

TEST(Asker, SpecsOfAUserAreBoundedWhileTheirJobsAreOpenAndWhileTheyAreListed) {
  World world;
  const auto more = [&](int number, int64_t uid) {
    JobSpec spec = Spec(StrCat(uid == 1002 ? "bob" : "ann", "_1_", 10'000'000 + number));
    spec.command = {std::string(1 << 20, 'x')};
    spec.owner.uid = uid;
    return spec;
  };
  const auto add = [&](const JobSpec& spec, bool ended) {
    Event event;
    event.kind = EventKind::kSubmitted;
    event.id = spec.id;
    event.spec = spec;
    EXPECT_TRUE(world.table.Apply(event));
    if (!ended) return;
    event.kind = EventKind::kEnded;
    event.ending.state = JobState::kCancelled;
    EXPECT_TRUE(world.table.Apply(event));
  };
  for (int i = 0; i < 63; ++i) add(more(i, 1002), false);
  EXPECT_EQ(world.Refusal(more(63, 1002), world.bob), ErrorCode::kDenied);
  EXPECT_TRUE(world.Stamp(more(63, 1001), world.ann)) << "the bound is each user's own";
  Event ended;
  ended.kind = EventKind::kEnded;
  ended.id = more(0, 1002).id;
  ended.ending.state = JobState::kSucceeded;
  EXPECT_TRUE(world.table.Apply(ended));
  EXPECT_TRUE(world.Stamp(more(63, 1002), world.bob));
  for (int i = 100; i < 292; ++i) add(more(i, 1002), true);
  const auto full = world.Stamp(more(63, 1002), world.bob);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("all jobs of user 'bob' would be larger than 256.0 MiB"),
            std::string::npos);
  EXPECT_EQ(full.error().hint, "overcap gc removes jobs that have ended");
  Event removed = ended;
  removed.kind = EventKind::kRemoved;
  EXPECT_TRUE(world.table.Apply(removed));
  EXPECT_TRUE(world.Stamp(more(63, 1002), world.bob));
}

TEST(Asker, AnArrayOfManyRangesIsOneRangeForOthers) {
  Job job;
  std::string text = "1000000000";
  for (int i = 0; i < 9'998; ++i) text = StrCat(i * 2, ",", text);
  job.spec.array = *ParseArraySpec(text);
  const std::string open = FormatArraySpec(PublicJob(job).spec.array);
  EXPECT_TRUE(ParseArraySpec(open)) << "clients read it: " << open;
  EXPECT_LT(open.size(), 40u);
  EXPECT_EQ(open.substr(0, 2), "0-");
  job.spec.array = *ParseArraySpec("0,2,4,6,8,10,12,14,16%3");
  EXPECT_EQ(FormatArraySpec(PublicJob(job).spec.array), "0-16:2%3");
  job.spec.array = *ParseArraySpec("1,3,5-9:2");
  EXPECT_EQ(FormatArraySpec(PublicJob(job).spec.array), "1,3,5-9:2");
}

TEST(Asker, ThePublicRowHasNoSecrets) {
  const World world;
  const Job open = PublicJob(world.job());
  EXPECT_EQ(open.spec.user, "ann");
  EXPECT_EQ(open.spec.placement.partitions, world.job().spec.placement.partitions);
  EXPECT_EQ(open.spec.lab, "vision");
  EXPECT_EQ(open.spec.name, "");
  EXPECT_TRUE(open.spec.command.empty());
  JobRecord record;
  record.spec = world.job().spec;
  record.spec.placement.partitions = {"short", "overcap"};
  record.partition = "overcap";
  record.dir = "/secret";
  record.reason = "secret";
  record.exit_status = 3;
  record.logs = {{1, 0, -1, "/secret"}};
  const JobRecord shown = PublicRecord(record);
  EXPECT_EQ(shown.dir + shown.reason + shown.spec.name, "");
  EXPECT_TRUE(shown.logs.empty() && shown.spec.command.empty());
  EXPECT_EQ(shown.exit_status, -1);
  EXPECT_EQ(shown.spec.id, "ann_1_00000001");
  EXPECT_EQ(shown.partition, "overcap") << "without it nobody could say what counts against whose cap";
  EXPECT_EQ(shown.spec.placement.partitions, record.spec.placement.partitions);
}

}  // namespace
}  // namespace overcap
