// SPDX-License-Identifier: Apache-2.0
#include "daemon/api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/machine_json.h"
#include "sys/fake_files.h"
#include "sys/random.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

// Agents that start and never do anything.
class IdleAgents : public Agents {
 public:
  Result<ProcessIdentity> Start(const AgentStart& start) override {
    started.push_back(start);
    return ProcessIdentity{next_pid_++, 1, "boot"};
  }
  std::string CurrentBoot() const override { return "boot"; }
  bool IsAlive(const ProcessIdentity&) const override { return true; }
  int64_t RunningForUs(const ProcessIdentity&) const override { return 0; }
  bool RanOutOfMemory(const SlotName&) const override { return false; }
  Result<void> Watch(const ProcessIdentity&, const AgentToken& token) override {
    watched.push_back(token);
    return {};
  }
  void Signal(const ProcessIdentity& agent, int signal) override { signals.emplace_back(agent.pid, signal); }
  int KillStrays(const SlotName&) override { return 0; }
  void PrepareSpare(const SideWork&, const std::string&) override {}
  void EmptyTrash(const SideWork&) override {}

  std::vector<AgentStart> started;
  std::vector<AgentToken> watched;
  std::vector<std::pair<pid_t, int>> signals;

 private:
  pid_t next_pid_ = 100;
};

Machine FourGpus() {
  Machine machine;
  machine.cpus = 4;
  for (int i = 0; i < 4; ++i) machine.gpus.push_back({i, "a40", "", 0});
  return machine;
}

class ApiTest : public testing::Test {
 protected:
  ApiTest() {
    EXPECT_TRUE(engine_.Open());
    EXPECT_TRUE(engine_.Turn());
  }
  Json Ask(const Json& request) {
    const Handled handled = api_.Handle(request.dump());
    EXPECT_TRUE(engine_.Turn());
    if (!handled.wait) return Json::parse(handled.reply);
    const auto reply = api_.Check(*handled.wait);
    return reply ? Json::parse(*reply) : Json("waits");
  }
  Json Submit(const std::string& id, int gpus) {
    JobSpec spec;
    spec.id = id;
    spec.user = "ann";
    spec.cluster = "local";
    spec.command = {"echo", "hi"};
    spec.workdir = "/tmp";
    spec.resources.gpus = gpus;
    return Ask({{"op", "submit"}, {"spec", Json::parse(SpecToJson(spec))}});
  }

  FakeFiles files_;
  FakeClock clock_;
  IdleAgents agents_;
  Engine engine_{clock_, files_, agents_, "/state/overcap", FourGpus()};
  Api api_{engine_, clock_, {}};
};

constexpr char kFirst[] = "ann_1700000000_00000001";
constexpr char kSecond[] = "ann_1700000000_00000011";

TEST_F(ApiTest, ASubmittedJobRunsAndIsQueried) {
  const Json reply = Submit(kFirst, 2);
  EXPECT_EQ(reply.at("ok").at("id"), kFirst);
  const Json job = Ask({{"op", "query"}, {"ids", {kFirst}}}).at("ok").at("jobs").at(0);
  EXPECT_EQ(job.at("state"), "running");
  EXPECT_EQ(job.at("gpu_indices"), Json({0, 1}));
  ASSERT_EQ(agents_.started.size(), 1u);
  EXPECT_EQ(agents_.started[0].gpus, (std::vector<int>{0, 1}));
}

TEST_F(ApiTest, TheSameSubmitTwiceIsOneJob) {
  Submit(kFirst, 1);
  EXPECT_EQ(Submit(kFirst, 1).at("ok").at("id"), kFirst);
  EXPECT_EQ(agents_.started.size(), 1u);
  EXPECT_EQ(Submit(kFirst, 2).at("error").at("code"), "conflict");
}

TEST_F(ApiTest, ASubmitThatIsSentAgainIsAnsweredWithTheRecordAlsoByTheNextEngine) {
  JobSpec spec;
  spec.id = kFirst;
  spec.user = "ann";
  spec.cluster = "local";
  spec.command = {"echo", "\xff\xfe", ""};
  spec.workdir = "/tmp";
  spec.env_names = {"A"};
  spec.array = *ParseArraySpec("0-9:3%2");
  spec.submitted_us = 1'700'000'000'123'456;
  const Json submit = {{"op", "submit"}, {"spec", Json::parse(SpecToJson(spec))}};
  ASSERT_EQ(Ask(submit).at("ok").at("id"), kFirst);
  Engine next(clock_, files_, agents_, "/state/overcap", FourGpus());
  ASSERT_TRUE(next.Open());
  Api api(next, clock_, {});
  EXPECT_EQ(Json::parse(api.Handle(submit.dump()).reply).at("ok").at("id"), kFirst);
  EXPECT_EQ(next.table().jobs().size(), 1u);
}

TEST_F(ApiTest, ASubmitThatIsSentAgainIsAnsweredThoughNothingCanBeWrittenAnyMore) {
  JobSpec spec;
  spec.id = kFirst;
  spec.user = "ann";
  spec.cluster = "local";
  spec.command = {"true"};
  spec.workdir = "/tmp";
  Machine other = FourGpus();
  other.cpus = 8;
  Json submit = {{"op", "submit"}, {"spec", Json::parse(SpecToJson(spec))}};
  ASSERT_EQ(Ask(submit).at("ok").at("id"), kFirst);
  Ask({{"op", "cancel"}, {"ids", {kFirst}}});
  submit["machine"] = Json::parse(MachineToJson(other));
  files_.SetFreeBytes(10);
  EXPECT_EQ(Ask(submit).at("ok").at("id"), kFirst);
}

TEST_F(ApiTest, ASubmitThatIsSentAgainAfterItsJobWasRemovedRunsNothing) {
  JobSpec spec;
  spec.id = kFirst;
  spec.user = "ann";
  spec.cluster = "local";
  spec.command = {"true"};
  spec.workdir = "/tmp";
  spec.hold = true;
  const Json submit = {{"op", "submit"}, {"spec", Json::parse(SpecToJson(spec))}};
  Ask(submit);
  Ask({{"op", "cancel"}, {"ids", {kFirst}}});
  ASSERT_EQ(Ask({{"op", "remove"}, {"ids", {kFirst}}}).at("ok").at("removed"), 1);
  const Json error = Ask(submit).at("error");
  EXPECT_EQ(error.at("code"), "not_found");
  EXPECT_NE(error.at("message").get<std::string>().find("was removed"), std::string::npos) << error;
  Engine next(clock_, files_, agents_, "/state/overcap", FourGpus());
  ASSERT_TRUE(next.Open());
  Api api(next, clock_, {});
  EXPECT_EQ(Json::parse(api.Handle(submit.dump()).reply).at("error").at("code"), "not_found");
}

TEST_F(ApiTest, WhatTheMachineDoesNotHaveIsRefusedInWords) {
  const Json error = Submit(kFirst, 8).at("error");
  EXPECT_EQ(error.at("code"), "usage");
  EXPECT_NE(error.at("message").get<std::string>().find("asks for 8 GPUs, this machine has 4"),
            std::string::npos);
  EXPECT_TRUE(engine_.table().jobs().empty());
}

TEST_F(ApiTest, AWaitIsAnsweredWhenTheJobHasEndedOrItsTimeIsOver) {
  Submit(kFirst, 1);
  EXPECT_EQ(Ask({{"op", "wait"}, {"ids", {kFirst}}, {"timeout_s", 5}}), "waits");
  EXPECT_EQ(Ask({{"op", "wait"}, {"ids", {kFirst}}, {"timeout_s", 0}}).at("ok").at("done"), false);
  EXPECT_EQ(
      Ask({{"op", "wait"}, {"ids", {kFirst}}, {"until", "started"}, {"timeout_s", 5}}).at("ok").at("done"),
      true);
}

TEST_F(ApiTest, CancelTellsTheAgentOnce) {
  Submit(kFirst, 1);
  Ask({{"op", "cancel"}, {"ids", {kFirst}}});
  Ask({{"op", "cancel"}, {"ids", {kFirst}}});
  ASSERT_EQ(agents_.signals.size(), 1u);
  EXPECT_EQ(agents_.signals[0].second, 15);
}

TEST_F(ApiTest, ListGivesTheAskedColumnsInOrderOfSubmission) {
  Submit(kFirst, 4);
  Submit(kSecond, 4);
  const Json reply = Ask({{"op", "list"}, {"columns", {"id", "state", "gpus"}}}).at("ok");
  EXPECT_EQ(reply.at("rows"), Json({{kFirst, "running", 4}, {kSecond, "queued", 4}}));
  EXPECT_EQ(reply.at("counts").at("queued"), 1);
  EXPECT_EQ(Ask({{"op", "list"}, {"columns", {"colour"}}}).at("error").at("code"), "usage");
}

TEST_F(ApiTest, ASuffixThatFitsTwoJobsListsBoth) {
  Submit(kFirst, 1);
  Submit(kSecond, 1);
  const Json error = Ask({{"op", "resolve"}, {"refs", {"1"}}}).at("error");
  EXPECT_EQ(error.at("code"), "conflict");
  EXPECT_NE(error.at("message").get<std::string>().find(kFirst), std::string::npos);
  EXPECT_EQ(Ask({{"op", "resolve"}, {"refs", {"last", "0001"}}}).at("ok").at("ids"), Json({kSecond, kFirst}));
}

TEST_F(ApiTest, AJobThatRunsCannotBeRemoved) {
  Submit(kFirst, 1);
  EXPECT_EQ(Ask({{"op", "remove"}, {"ids", {kFirst}}}).at("error").at("code"), "conflict");
}

TEST_F(ApiTest, AFullDiskRefusesTheJobAndNothingIsLeft) {
  files_.SetFreeBytes(10);
  EXPECT_EQ(Submit(kFirst, 1).at("error").at("code"), "unavailable");
  files_.SetFreeBytes(std::nullopt);
  EXPECT_EQ(Ask({{"op", "query"}, {"ids", {kFirst}}}).at("error").at("code"), "not_found");
  EXPECT_EQ(Submit(kFirst, 1).at("ok").at("id"), kFirst);
}

TEST_F(ApiTest, NoBytesMakeItFail) {
  const std::string good =
      Json({{"op", "list"}, {"columns", {"id"}}, {"states", {"queued"}}, {"since_us", 5}}).dump();
  SeededRandom random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (uint64_t i = 0; i <= random.Below(4); ++i)
      bad[random.Below(bad.size())] = static_cast<char>(random.Next());
    const std::string reply = api_.Handle(bad.substr(0, random.Below(bad.size() + 1))).reply;
    EXPECT_TRUE(Json::parse(reply).is_object());
  }
}

}  // namespace
}  // namespace overcap
