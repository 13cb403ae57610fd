// SPDX-License-Identifier: Apache-2.0
#include "inputs.h"
#include "launch/detect/host_name.h"
#include "launch/detect/pbs_text.h"

namespace overcap {
namespace {

TEST(PbsTextFuzz, ExecHostAndExecVnodeGiveSoundNumbers) {
  const std::vector<std::string> texts = {"ml1/0*2+ml2/0*2", "(ml1:ncpus=2:ngpus=4)+(ml2:ncpus=2)",
                                          "(a[0]:ncpus=1:ngpus=2+a[1]:ngpus=2)+(c:ncpus=1)",
                                          "3:ncpus=2:mpiprocs=2+1:ncpus=4", "ml1:15002/0*2"};
  const std::vector<std::string> words = {
      "+", "(", ")", ":", "/0*", "ngpus=", "mpiprocs=", "99999999999", "ml1", "-1", "="};
  Mutator other(texts, words, 5), third(texts, words, 6);
  ForEachInput(Mutator(texts, words, 4), [&](const std::string& input) {
    PbsJobText job;
    job.exec_host = input;
    job.exec_vnode = other.Next();
    job.select = third.Next();
    const auto hosts = HostsOf(job);
    if (!hosts) return ExpectOneLine(hosts.error(), ErrorCode::kCorrupt);
    for (const AllocatedHost& host : *hosts) {
      EXPECT_EQ(HostNameProblem(host.name), "");
      EXPECT_GE(host.slots, 0);
      EXPECT_GE(host.gpus, -1);
    }
    return true;
  });
}

TEST(PbsTextFuzz, WhatQstatPrintsIsReadOrRefused) {
  const std::vector<std::string> texts = {
      R"x({"Jobs":{"0.ml1":{"Job_Name":"a","job_state":"R","exec_host":"ml1/0*2+ml2/0*2"}}})x",
      R"x({"Jobs":{"1[2].ml1":{"exec_vnode":"(ml1:ncpus=1)","Resource_List":{"select":"1:ncpus=1"}}}})x",
      R"x({"Jobs":{"2.ml1":{"Variable_List":{"PBS_O_HOME":"/h"},"stime":"Sun Nov 15 01:10:44 2026"}}})x"};
  const std::vector<std::string> words = {"{", "}",    "\"",    ":",       ",", "[",
                                          "]", "null", "1e999", "\\u0000", "-1"};
  ForEachInput(Mutator(texts, words, 8), [&](const std::string& input) {
    const auto jobs = ParseQstat(input);
    if (!jobs) return ExpectOneLine(jobs.error(), ErrorCode::kCorrupt);
    for (const PbsJobText& job : *jobs) EXPECT_TRUE(IsPbsJobId(job.id));
    return true;
  });
}

}  // namespace
}  // namespace overcap
