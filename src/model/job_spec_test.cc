// SPDX-License-Identifier: Apache-2.0
#include "model/job_spec.h"

#include <gtest/gtest.h>
#include <limits>
#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "model/request_limits.h"

namespace overcap {
namespace {

JobSpec GoodSpec() {
  JobSpec spec;
  spec.id = "ann_1563257309_60ce2fc7";
  spec.user = "ann";
  spec.command = {"python", "train.py"};
  spec.workdir = "/tmp";
  return spec;
}

std::string Hash(char c) {
  return std::string(64, c);
}

rc::Gen<std::string> Bytes() {
  return rc::gen::container<std::string>(rc::gen::inRange<char>(-128, 127));
}

JobSpec AnySpec() {
  JobSpec spec;
  spec.id = *Bytes();
  spec.user = *Bytes();
  spec.lab = *Bytes();
  if (*rc::gen::arbitrary<bool>()) {
    spec.owner = {*rc::gen::inRange<int64_t>(0, UINT32_MAX),
                  *rc::gen::inRange<int64_t>(0, UINT32_MAX),
                  {*rc::gen::inRange<int64_t>(0, UINT32_MAX), 4},
                  {{"nofile", *rc::gen::inRange<int64_t>(-1, INT64_MAX), -1}, {"nproc", 7, 9}}};
  }
  spec.cluster = *Bytes();
  spec.name = *Bytes();
  spec.command = *rc::gen::container<std::vector<std::string>>(Bytes());
  spec.resources = {*rc::gen::arbitrary<int>(),     *rc::gen::arbitrary<int>(),
                    *rc::gen::arbitrary<int>(),     *rc::gen::arbitrary<int>(),
                    *rc::gen::arbitrary<int>(),     *rc::gen::arbitrary<int64_t>(),
                    *rc::gen::arbitrary<int64_t>(), *Bytes()};
  if (*rc::gen::arbitrary<bool>()) spec.array = *ParseArraySpec("0-9,20-30:5%3");
  spec.placement = {*rc::gen::container<std::vector<std::string>>(Bytes()), *Bytes(), *Bytes(), *Bytes(),
                    *rc::gen::container<std::vector<std::string>>(Bytes())};
  if (*rc::gen::arbitrary<bool>()) spec.sweep.push_back({*Bytes(), {*Bytes(), *Bytes()}});
  spec.workdir = *Bytes();
  spec.source = *Bytes();
  spec.snapshot = *Bytes();
  spec.environment = *Bytes();
  spec.env_names = *rc::gen::container<std::vector<std::string>>(Bytes());
  if (*rc::gen::arbitrary<bool>()) spec.after.push_back({*Bytes(), *rc::gen::arbitrary<bool>()});
  spec.replaces = *Bytes();
  spec.resubmit_of = *Bytes();
  spec.allocation = *Bytes();
  spec.batch = *rc::gen::arbitrary<bool>();
  spec.requeue_on_timeout = *rc::gen::arbitrary<bool>();
  spec.warn_seconds = *rc::gen::arbitrary<int64_t>();
  spec.warn_shell = *rc::gen::arbitrary<bool>();
  spec.hold = *rc::gen::arbitrary<bool>();
  spec.requeue = *rc::gen::arbitrary<bool>();
  spec.max_restarts = *rc::gen::arbitrary<int>();
  spec.priority = *rc::gen::arbitrary<int>();
  spec.umask = *rc::gen::inRange(-1, 01000);
  spec.nofile = *rc::gen::inRange<int64_t>(0, std::numeric_limits<int64_t>::max());
  spec.submitted_us = *rc::gen::arbitrary<int64_t>();
  return spec;
}

RC_GTEST_PROP(JobSpecTest, AnySpecComesBackFromJsonByteForByte, ()) {
  const JobSpec spec = AnySpec();
  const auto read = SpecFromJson(SpecToJson(spec));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == spec);
}

RC_GTEST_PROP(JobSpecTest, DamagedTextNeverThrows, ()) {
  std::string text = SpecToJson(AnySpec());
  const auto at = *rc::gen::inRange<size_t>(0, text.size());
  text[at] = *rc::gen::inRange<char>(-128, 127);
  const auto read = SpecFromJson(text.substr(0, *rc::gen::inRange<size_t>(at, text.size() + 1)));
  if (!read) RC_ASSERT(read.error().code == ErrorCode::kCorrupt || read.error().code == ErrorCode::kUsage);
}

TEST(JobSpecTest, BytesThatAreNoUtf8AreWrittenAsHex) {
  JobSpec spec;
  spec.command = {"a\xff", "plain"};
  EXPECT_EQ(SpecToJson(spec), R"({"command":[{"hex":"61ff"},"plain"]})");
}

TEST(JobSpecTest, WhatIsNoSpecIsAnError) {
  for (const char* text : {"",
                           "null",
                           "[]",
                           "3",
                           "{",
                           R"({"command":"x"})",
                           R"({"command":[1]})",
                           R"({"command":[{"hex":"6"}]})",
                           R"({"command":[{"hex":"zz"}]})",
                           R"({"command":[{"hex":7}]})",
                           R"({"resources":[]})",
                           R"({"resources":{"nodes":1.5}})",
                           R"({"resources":{"nodes":99999999999}})",
                           R"({"resources":{"mem_bytes":18446744073709551615}})",
                           R"({"hold":1})",
                           R"({"after":{}})",
                           R"({"after":["x"]})",
                           R"({"after":[{"job_id":1}]})",
                           R"({"array":"5-1"})",
                           R"({"array":7})",
                           "{\"id\":\"\xff\"}"}) {
    EXPECT_FALSE(SpecFromJson(text)) << text;
  }
}

TEST(JobSpecTest, DeepNestingIsAnErrorAndNoCrash) {
  EXPECT_FALSE(SpecFromJson(std::string(200000, '[')));
  EXPECT_FALSE(SpecFromJson(R"({"later":)" + std::string(100000, '[') + std::string(100000, ']') + "}"));
  const auto nested = [](size_t levels) {
    return SpecFromJson(StrCat(R"({"later":)", std::string(levels, '['), std::string(levels, ']'), "}"));
  };
  EXPECT_TRUE(nested(kMaxJsonDepth - 1));
  EXPECT_FALSE(nested(kMaxJsonDepth));
  EXPECT_TRUE(SpecFromJson(R"({"name":"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["})"))
      << "brackets in text do not count";
}

TEST(JobSpecTest, UnknownFieldsAndNullsAreIgnored) {
  EXPECT_EQ(SpecFromJson(R"({"id":"x","new":{"a":1},"name":null})")->id, "x");
}

TEST(JobSpecTest, AGoodSpecIsValid) {
  JobSpec spec = GoodSpec();
  EXPECT_TRUE(ValidateSpec(spec));
  spec.snapshot = Hash('a');
  spec.workdir = "sub/dir..x";
  spec.environment = Hash('0');
  spec.resources = {2, 4, 8, 4, 3, 1 << 20, 60, "a40|h200"};
  spec.after = {{"bob_1_00000000", true}};
  EXPECT_TRUE(ValidateSpec(spec));
}

struct BadCase {
  const char* message;
  void (*spoil)(JobSpec*);
};

TEST(JobSpecTest, ABadSpecIsRefusedByName) {
  const BadCase cases[] = {
      {"'x' is no job id", [](JobSpec* s) { s->id = "x"; }},
      {"there is no command", [](JobSpec* s) { s->command.clear(); }},
      {"the command's first word is empty", [](JobSpec* s) { s->command = {""}; }},
      {"the command's word 'a\xEF\xBF\xBD' has a NUL byte",
       [](JobSpec* s) { s->command = {std::string("a\0", 2)}; }},
      {"'nodes' is 0, it must be at least 1", [](JobSpec* s) { s->resources.nodes = 0; }},
      {"'gpus' is -1, it must be at least 0", [](JobSpec* s) { s->resources.gpus = -1; }},
      {"'ranks_per_node' is 0, it must be at least 1", [](JobSpec* s) { s->resources.ranks_per_node = 0; }},
      {"'cpus' is 2000000, it must be at most 1000000", [](JobSpec* s) { s->resources.cpus = 2000000; }},
      {"'mem_bytes' is -5, it must be at least 0", [](JobSpec* s) { s->resources.mem_bytes = -5; }},
      {"'time_seconds' is -1, it must be at least 0", [](JobSpec* s) { s->resources.time_seconds = -1; }},
      {"asks for 8 GPUs on 3 nodes: every node must get the same number",
       [](JobSpec* s) { s->resources.nodes = 3, s->resources.gpus = 8; }},
      {"GPU type 'a40|', column 5: a GPU type is missing",
       [](JobSpec* s) { s->resources.gpu_type = "a40|"; }},
      {"'snapshot' is no SHA-256", [](JobSpec* s) { s->snapshot = "12"; }},
      {"workdir 'rel' is not absolute", [](JobSpec* s) { s->workdir = "rel"; }},
      {"workdir 'a/../..' is not inside the captured folder",
       [](JobSpec* s) { s->snapshot = Hash('b'), s->workdir = "a/../.."; }},
      {"workdir '/etc' is not inside the captured folder",
       [](JobSpec* s) { s->snapshot = Hash('b'), s->workdir = "/etc"; }},
      {"'../x' is no job id", [](JobSpec* s) { s->after = {{"../x"}}; }},
      {"job 'ann_1563257309_60ce2fc7' cannot wait for itself", [](JobSpec* s) { s->after = {{s->id}}; }},
      {"'y' is no older job's id", [](JobSpec* s) { s->replaces = "y"; }},
      {"'max_restarts' is -1, it must be at least 0", [](JobSpec* s) { s->max_restarts = -1; }},
      {"'A=B' is no name of an environment variable", [](JobSpec* s) { s->env_names = {"A=B"}; }},
      {"the job's name has 201 bytes, at most 200 are possible",
       [](JobSpec* s) { s->name = std::string(201, 'n'); }},
      {"the name of a partition has 300 bytes, at most 200 are possible",
       [](JobSpec* s) {
         s->placement.partitions = {"a", std::string(300, 'p')};
       }},
      {"the GPU type has 401 bytes, at most 200 are possible",
       [](JobSpec* s) { s->resources.gpu_type = std::string(401, 'a'); }},
      {"names 65 partitions, at most 64 are possible",
       [](JobSpec* s) { s->placement.partitions.assign(65, "short"); }},
      {"waits for 10001 jobs, at most 10000 are possible",
       [](JobSpec* s) { s->after.assign(10'001, {"bob_1_00000000"}); }},
  };
  for (const BadCase& bad : cases) {
    JobSpec spec = GoodSpec();
    bad.spoil(&spec);
    const auto result = ValidateSpec(spec);
    ASSERT_FALSE(result) << bad.message;
    EXPECT_EQ(result.error().message, bad.message);
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  }
}

TEST(Sweep, EveryCombinationComesOnceAndTheLastAxisChangesFastest) {
  const std::vector<SweepAxis> sweep = {{"lr", {"1e-4", "1e-3"}}, {"gamma", {"0.9", "1", "a b"}}};
  ASSERT_EQ(SweepCount(sweep), 6);
  EXPECT_EQ(SweepVariables(sweep, 0), (std::vector<std::string>{"lr=1e-4", "gamma=0.9"}));
  EXPECT_EQ(SweepVariables(sweep, 2), (std::vector<std::string>{"lr=1e-4", "gamma=a b"}));
  EXPECT_EQ(SweepVariables(sweep, 3), (std::vector<std::string>{"lr=1e-3", "gamma=0.9"}));
}

TEST(Sweep, MustFitItsArray) {
  JobSpec spec = GoodSpec();
  spec.sweep = {{"lr", {"1", "2"}}};
  EXPECT_FALSE(ValidateSpec(spec));
  spec.array = *ParseArraySpec("0-1");
  EXPECT_TRUE(ValidateSpec(spec));
  spec.sweep[0].name = "a=b";
  EXPECT_FALSE(ValidateSpec(spec));
}

TEST(JobSpec, AnOwnerThatIsNoOneIsRefused) {
  for (const char* owner :
       {R"({"uid":-1,"gid":0})", R"({"uid":4294967295,"gid":0})", R"({"uid":5})", R"({"uid":"5","gid":5})",
        R"({"uid":5,"gid":5,"groups":[-1]})", R"({"uid":5,"gid":5,"groups":5})",
        R"({"uid":5,"gid":5,"limits":{"nofile":7}})", R"({"uid":5,"gid":5,"limits":{"nofile":[1,-2]}})"}) {
    EXPECT_FALSE(SpecFromJson(std::string(R"({"owner":)") + owner + "}")) << owner;
  }
  const auto spec = SpecFromJson(R"({"owner":{"uid":5,"gid":6}})");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->owner, (JobOwner{5, 6, {}, {}}));
}

}  // namespace
}  // namespace overcap
