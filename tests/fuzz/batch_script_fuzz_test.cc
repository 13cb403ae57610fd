// SPDX-License-Identifier: Apache-2.0
#include "control/batch_request.h"
#include "control/batch_script.h"
#include "inputs.h"

namespace overcap {
namespace {

TEST(BatchScriptFuzz, ScriptsAreTakenOrRefusedWithALine) {
  const std::vector<std::string> texts = {
      "#!/bin/bash -l\n#SBATCH -p short,overcap --gres=gpu:a40:2 # x\n#SBATCH -t 1-12:00 --mem=4G\necho\n",
      "#!/bin/sh\n#SBATCH --signal=B:USR1@120 -d afterok:1:2\n#SBATCH -J \"a b\" --export=ALL,A=1 -a 0-9%2\n",
      "#!/usr/bin/env python3\n\n#SBATCH -N 2-4 -n8 -c 3 --ntasks-per-node 2 -HQ --exclusive=user\nx\n"};
  const std::vector<std::string> words = {
      "#SBATCH ", "\n", "\"", "'", "\\",          "#",  "--gres=", "gpu:", "-N", "=", ":",
      ",",        "@",  "--", "-", "99999999999", "-1", "--mem=",  "-t",   "\r", "0", "--new"};
  ForEachInput(Mutator(texts, words, 11), [&](const std::string& input) {
    const auto script = ParseBatchScript(input, "job.sh");
    if (!script) return ExpectOneLine(script.error(), ErrorCode::kUsage);
    for (const bool places : {true, false}) {
      JobRequest request;
      request.folder = "/code";
      request.command = {"job.sh"};
      Capabilities can;
      can.placement = can.warning = places;
      std::vector<Dependency> after;
      const auto applied = ApplyBatchScript({"job.sh", "job.sh", input}, can, &request, &after);
      if (!applied) return ExpectOneLine(applied.error(), ErrorCode::kUsage);
      EXPECT_GE(request.nodes.value_or(1), 1);
      EXPECT_GE(request.gpus.value_or(0), 0);
      EXPECT_GE(request.cpus.value_or(1), 1);
      EXPECT_GE(request.mem_bytes.value_or(1), 1);
      EXPECT_GE(request.time_seconds.value_or(1), 1);
      EXPECT_TRUE(places || request.placement == Placement{});
    }
    return true;
  });
}

}  // namespace
}  // namespace overcap
