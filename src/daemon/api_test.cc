// SPDX-License-Identifier: Apache-2.0
#include "daemon/api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "daemon/journal.h"
#include "model/agent_report.h"
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

// ---- requests that were made to stop the engine

Asker Bob() {
  Asker asker;
  asker.only_user = false;
  asker.user = "bob";
  asker.owner = {1002, 1002, {}, {}};
  asker.area = "/state/overcap/users/1002";
  return asker;
}

class HostileTest : public ApiTest {
 protected:
  std::string Say(const std::string& request, const Asker& asker = Bob()) {
    Handled handled = api_.Handle(request, asker);
    EXPECT_TRUE(engine_.Turn());
    if (!handled.wait) return handled.reply;
    return api_.Check(*handled.wait).value_or("waits");
  }
  std::string Refusal(const Json& request) {
    const Json reply = Json::parse(Say(request.dump()));
    return reply.contains("error") ? reply.at("error").at("message").get<std::string>() : "";
  }
  static std::string Id(int number) { return StrCat("bob_17_", 10'000'000 + number); }
  static Json SpecOf(int number) {
    return {{"id", Id(number)}, {"command", {"true"}}, {"workdir", "/tmp"}, {"hold", true}};
  }
  std::string SubmitBob(const Json& spec) { return Refusal({{"op", "submit"}, {"spec", spec}}); }
};

TEST_F(HostileTest, TextThatIsNestedTooDeepIsRefusedWhereverItStands) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const std::string& request :
       {deep, R"({"op":"submit","spec":)" + deep + "}", R"({"op":"submit","spec":{"store":)" + deep + "}}",
        R"({"op":"configure","machine":)" + deep + "}", R"({"op":"query","ids":)" + deep + "}"}) {
    for (const Asker& asker : {Bob(), Asker()})
      EXPECT_NE(Say(request, asker).find("nested more than 32 levels deep"), std::string::npos);
  }
}

TEST_F(HostileTest, AListOfMoreThanTenThousandIsRefusedAndARepeatedIdCountsOnce) {
  ASSERT_EQ(SubmitBob(SpecOf(1)), "");
  const std::vector<std::string> many(10'001, Id(1)), most(10'000, Id(1));
  for (const char* op : {"query", "cancel", "hold", "release", "wait", "remove"})
    EXPECT_EQ(Refusal({{"op", op}, {"ids", many}}), "'ids' has 10001 entries, at most 10000 are possible")
        << op;
  EXPECT_EQ(Refusal({{"op", "resolve"}, {"refs", many}}),
            "'refs' has 10001 entries, at most 10000 are possible");
  EXPECT_EQ(Refusal({{"op", "list"}, {"columns", many}}),
            "'columns' has 10001 entries, at most 10000 are possible");
  EXPECT_EQ(Refusal({{"op", "list"}, {"columns", {"id", "argv", "id"}}}), "column 'id' is named twice");
  const Json reply = Json::parse(Say(Json({{"op", "query"}, {"ids", most}}).dump()));
  EXPECT_EQ(reply.at("ok").at("jobs").size(), 1u);
  EXPECT_EQ(Json::parse(Say(Json({{"op", "resolve"}, {"refs", most}}).dump())).at("ok").at("ids").size(),
            10'000u);
}

TEST_F(HostileTest, ManySuffixesAreFoundAsOneByOne) {
  std::vector<std::string> refs;
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(SubmitBob(SpecOf(i)), "");
    refs.push_back(Id(i).substr(12));
  }
  refs.push_back("last");
  const Json ids = Json::parse(Say(Json({{"op", "resolve"}, {"refs", refs}}).dump())).at("ok").at("ids");
  EXPECT_EQ(ids.at(17), Id(17));
  EXPECT_EQ(ids.at(300), Id(299));
  refs[5] = "0";
  EXPECT_NE(Refusal({{"op", "resolve"}, {"refs", refs}}).find("is the end of"), std::string::npos);
  refs[5] = "nosuch";
  EXPECT_EQ(Refusal({{"op", "resolve"}, {"refs", refs}}), "there is no job 'nosuch'");
}

TEST_F(HostileTest, ASpecAndAReplyHaveAGreatestSize) {
  Json large = SpecOf(0);
  large["command"] = {"echo", std::string(1 << 20, 'x')};
  EXPECT_NE(SubmitBob(large).find("at most 1048576 are possible"), std::string::npos);
  large["command"] = {"echo", std::string(1'000'000, 'x')};
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(Id(i));
    large["id"] = ids.back();
    ASSERT_EQ(SubmitBob(large), "");
  }
  EXPECT_EQ(Refusal({{"op", "query"}, {"ids", ids}}), "the reply would be larger than 16.0 MiB");
  EXPECT_EQ(Refusal({{"op", "list"}}), "the reply would be larger than 16.0 MiB");
  EXPECT_EQ(Refusal({{"op", "list"}, {"columns", {"argv"}}}), "the reply would be larger than 16.0 MiB");
  // A list comes in parts to those who ask for them.
  for (const bool columns : {false, true}) {
    Json request = {{"op", "list"}, {"paged", true}};
    if (columns) request["columns"] = {"id", "argv"};
    std::vector<std::string> listed;
    for (int pages = 1;; ++pages) {
      const std::string reply = Say(request.dump());
      EXPECT_LT(reply.size(), size_t{16} << 20);
      const Json ok = Json::parse(reply).at("ok");
      for (const Json& row : ok.at(columns ? "rows" : "jobs"))
        listed.push_back(columns ? row.at(0) : row.at("id"));
      if (!ok.contains("next")) {
        EXPECT_EQ(pages, 2);
        break;
      }
      request["from"] = ok.at("next");
    }
    EXPECT_EQ(listed, ids);
  }
  // What was done is done, however much there is to say about it.
  for (const Json& request :
       {Json({{"op", "wait"}, {"ids", ids}, {"timeout_s", 0}}), Json({{"op", "cancel"}, {"ids", ids}})}) {
    const std::string reply = Say(request.dump());
    EXPECT_LT(reply.size(), size_t{16} << 20);
    const Json ok = Json::parse(reply).at("ok");
    EXPECT_EQ(ok.at("jobs").size() + ok.at("left_off").get<size_t>(), ids.size());
  }
}

TEST_F(HostileTest, ALogIsNotNamedForEachOfAMillionRanksAndAttempts) {
  Event event;
  event.kind = EventKind::kSubmitted;
  event.id = Id(1);
  event.spec.id = Id(1);
  event.spec.command = {"true"};
  event.spec.resources.ranks_per_node = 1'000'000;  // as an older engine took it
  event.spec.owner = Bob().owner;
  ASSERT_TRUE(files_.MakeFolders("/other"));
  Engine other(clock_, files_, agents_, "/other", FourGpus());
  Journal journal(files_, "/other/journal");
  ASSERT_TRUE(journal.Rewrite({event}));
  ASSERT_TRUE(other.Open()) << "limits are of new requests, not of what was taken before";
  const Job* job = other.table().Find(Id(1));
  ASSERT_NE(job, nullptr);
  EXPECT_LE(other.RecordOf(*job, true).logs.size(), 10'000u);
  EXPECT_TRUE(other.PublicRecordOf(*job).logs.empty());
}

TEST_F(HostileTest, ForgedTasksCountOnlyWhereTheArrayHasThem) {
  Json spec = SpecOf(1);
  spec["hold"] = false;
  spec["array"] = "0-9%1";
  spec["resources"] = {{"gpus", 1}};
  ASSERT_EQ(SubmitBob(spec), "");
  std::string report;
  for (int i = 0; i < 200'000; ++i) report += TaskStartLine(1, i, 1);
  ASSERT_TRUE(files_.MakeFolders(engine_.JobDir(Id(1)) + "/attempt-1"));
  ASSERT_TRUE(files_.WriteAtomic(engine_.JobDir(Id(1)) + "/attempt-1/agent-0.jsonl", report, false));
  for (int i = 0; i < 20; ++i) (void)Say(Json({{"op", "query"}, {"ids", {Id(1)}}}).dump());
  const Json job =
      Json::parse(Say(Json({{"op", "query"}, {"ids", {Id(1)}}}).dump())).at("ok").at("jobs").at(0);
  EXPECT_EQ(job.at("tasks").at("running"), 10);
  EXPECT_EQ(job.at("tasks").at("total"), 10);
}

TEST_F(HostileTest, TwentyThousandMutatedSpecsAreAnsweredAndTheEngineGoesOn) {
  const Json good = {
      {"op", "submit"},
      {"spec",
       {{"id", Id(1)},
        {"name", "n"},
        {"command", {"python", "train.py", {{"hex", "ff01"}}}},
        {"workdir", "/tmp"},
        {"hold", true},
        {"array", "0-9:3,20%2"},
        {"resources", {{"gpus", 1}, {"cpus", 2}, {"gpu_type", "a40|h100"}, {"time_seconds", 60}}},
        {"placement", {{"partitions", Json::array()}}},
        {"after", {{{"job_id", Id(0)}, {"any_end", true}}}},
        {"store", {{"at", "s3://b"}, {"endpoint", "http://h"}}},
        {"sweep", {{{"name", "LR"}, {"values", {"1", "2", "3", "4", "5"}}}}},
        {"mounts", {{{"name", "d"}, {"store", "/data"}, {"at", "data"}}}},
        {"owner", {{"uid", 0}, {"gid", 0}}}}}};
  ASSERT_EQ(SubmitBob(SpecOf(0)), "");
  ASSERT_EQ(Refusal(good), "") << "what is changed would be taken";
  const std::string text = good.dump();
  const std::vector<std::string> words = {"[",
                                          "{",
                                          "]",
                                          "}",
                                          "\"",
                                          ",",
                                          ":",
                                          "-1",
                                          "1e99",
                                          "99999999999999999999",
                                          "null",
                                          "true",
                                          "\\u0000",
                                          "{\"hex\":\"zz\"}",
                                          "\"0-999999999\"",
                                          "\"1,1,1\""};
  SeededRandom random(20'000);
  int taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = text;
    const std::string id = Id(10 + round);  // taken ones are jobs of their own
    bad.replace(bad.find(Id(1)), id.size(), id);
    for (uint64_t changes = random.Below(4) + 1; changes > 0; --changes) {
      const size_t at = random.Below(bad.size());
      const std::string& word = words[random.Below(words.size())];
      switch (random.Below(4)) {
        case 0:
          bad[at] = static_cast<char>(random.Next());
          break;
        case 1:
          bad.erase(at, random.Below(12));
          break;
        case 2:
          bad.insert(at, word);
          break;
        default:
          bad.replace(at, std::min<size_t>(bad.size() - at, 4), word);
      }
    }
    const Json reply = Json::parse(api_.Handle(bad, Bob()).reply);
    ASSERT_TRUE(reply.is_object() && reply.size() == 1) << bad;
    taken += reply.contains("ok") ? 1 : 0;
  }
  EXPECT_TRUE(engine_.Turn());
  EXPECT_GT(taken, 200);
  EXPECT_EQ(SubmitBob(SpecOf(7)), "");
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
