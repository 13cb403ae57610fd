// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_step.h"

#include "agent/elastic/lost_head.h"
#include "agent/elastic/node_command.h"
#include "agent/elastic/node_process.h"
#include "agent/elastic/stored_node.h"
#include "base/text.h"
#include "sys/prompt_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

Result<int> RunShared(const std::string& attempt_folder, std::vector<std::string> launch, int node) {
  NodeProcess process{WordsOfNode(std::move(launch), attempt_folder, node),
                      Variables::OfThisProcess().entries(), ""};
  process.argv.insert(process.argv.begin(), "overcap");
  const std::string log = StrCat(attempt_folder, "/rank-", node, ".log");
  OC_TRY_VOID(WriteTo(log));
  const PromptFiles prompt({log});
  OC_TRY(status, RunToEnd(std::move(process)));
  if (status == ExitStatus(ErrorCode::kUnavailable)) OC_TRY_VOID(CheckHead(attempt_folder, node, nullptr));
  return status;
}

}  // namespace

Result<int> RunNodeStep(const std::vector<std::string>& words) {
  const auto task = ParseInt(Variables::OfThisProcess().Get("SLURM_PROCID"));
  const bool number = task && *task >= 0 && *task <= 1'000'000;
  const int node = number ? static_cast<int>(*task) + 1 : 0;  // number 0 is not of the step
  if (number && !words.empty() && words[0].starts_with("--")) return RunStoredNode(words, node);
  if (words.size() < 2 || words[1] != "launch" || !number)
    return Fail(ErrorCode::kUsage, "agent node: this is no task of an elastic job");
  return RunShared(words[0], {words.begin() + 1, words.end()}, node);
}

}  // namespace overcap
