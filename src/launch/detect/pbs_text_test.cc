// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/pbs_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sys/posix_files.h"

namespace overcap {
namespace {

std::string Sample(const std::string& name) {
  return PosixFiles().Read(std::string(OVERCAP_TEST_DATA) + "/pbs-23.06.06/" + name).value();
}

TEST(PbsTextTest, QstatTellsARunningJob) {
  const auto jobs = ParseQstat(Sample("qstat-f-running.json")).value();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].id, "0.ml1");
  EXPECT_EQ(jobs[0].owner, "tester");
  EXPECT_EQ(jobs[0].state, "R");
  EXPECT_EQ(jobs[0].queue, "workq");
  EXPECT_EQ(jobs[0].name, "envjob");
  EXPECT_EQ(jobs[0].o_variables.at("PBS_O_WORKDIR"), "/opt/lab/home-tester/work");
  EXPECT_FALSE(jobs[0].o_variables.contains("FOO"));
  EXPECT_GT(jobs[0].start, 0);
  EXPECT_EQ(HostsOf(jobs[0]).value(),
            (std::vector<AllocatedHost>{{"ml1", 2, -1}, {"ml2", 2, -1}, {"ml3", 2, -1}}));
}

TEST(PbsTextTest, OddCharactersInAVariableDoNoHarm) {
  EXPECT_EQ(ParseQstat(Sample("qstat-hostile.json")).value().size(), 1u);
}

TEST(PbsTextTest, WhatIsCutOffOrBinaryIsRefused) {
  const std::string whole = Sample("qstat-f-running.json");
  for (size_t size = 0; size + 2 < whole.size(); size += 7) {
    EXPECT_FALSE(ParseQstat(std::string_view(whole).substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseQstat(std::string("\0\x01\xff{\xfe}", 6)));
}

TEST(PbsTextTest, WarningsAroundTheJsonAreSkipped) {
  EXPECT_EQ(ParseQstat("warning: x\n" + Sample("qstat-f-running.json") + "\nbye\n").value().size(), 1u);
  EXPECT_EQ(ParseQstat(R"({"timestamp": 1, "pbs_version": "23"})").value().size(), 0u);
}

TEST(PbsTextTest, WrongTypesAndIdsAreSkipped) {
  const auto jobs = ParseQstat(
      R"({"Jobs": {"../x": {}, "-x": {}, "1.s": [], "2.s": {"exec_host": 3, "stime": [], "Resource_List": 1}}})");
  ASSERT_EQ(jobs.value().size(), 1u);
  EXPECT_EQ((*jobs)[0].id, "2.s");
  EXPECT_FALSE(HostsOf((*jobs)[0]));
}

TEST(PbsTextTest, SlotsAreTheMpiprocsOfEachChunkAndGpusThoseOfItsVnodes) {
  PbsJobText job;
  job.exec_host = "a/0*4+b/0*4+a/1*2";
  job.exec_vnode = "(a:ncpus=4:ngpus=2)+(b[0]:ncpus=2:ngpus=1+b[1]:ncpus=2:ngpus=2)+(a:ncpus=2)";
  job.select = "2:ncpus=4:mpiprocs=4:ngpus=2+1:ncpus=2";
  EXPECT_EQ(HostsOf(job).value(), (std::vector<AllocatedHost>{{"a", 5, 2}, {"b", 4, 3}}));
  EXPECT_EQ(NodeFileText({{"a", 2, 0}, {"b", 0, 0}}), "a\na\nb\n");
}

TEST(PbsTextTest, OnlyTheServersOwnWordsSayThatAJobIsOver) {
  EXPECT_EQ(PbsLifeFrom({{0, 0}, "0.ml1 ... R workq\n"}), JobLife::kLives);
  EXPECT_EQ(PbsLifeFrom({{153, 0}, "qstat: Unknown Job Id 999.ml1\n"}), JobLife::kOver);
  EXPECT_EQ(PbsLifeFrom({{35, 0}, "qstat: 0.ml1 Job has finished\n"}), JobLife::kOver);
  EXPECT_EQ(PbsLifeFrom({{255, 0}, "cannot connect to server\n"}), JobLife::kNotTold);
}

TEST(PbsTextTest, AnyBytesAreSurvived) {
  EXPECT_TRUE(rc::check("nothing crashes", [](const std::string& bytes) {
    (void)ParseQstat("{" + bytes + "}");
    PbsJobText job;
    job.exec_host = job.exec_vnode = job.select = bytes;
    (void)HostsOf(job);
    (void)IsPbsJobId(bytes);
  }));
}

}  // namespace
}  // namespace overcap
