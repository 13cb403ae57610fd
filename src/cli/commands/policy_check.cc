// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/policy_file.h"

namespace overcap::cli {
namespace {

std::string Summary(const Policy& policy) {
  std::vector<std::string> types;
  for (const TypedGpus& kind : GpusOf(policy)) types.push_back(StrCat(kind.count, " ", kind.type));
  return StrCat(CountOf(static_cast<int64_t>(policy.labs.size()), "lab"), ", ",
                CountOf(static_cast<int64_t>(policy.partitions.size()), "partition"), ", ",
                CountOf(static_cast<int64_t>(NodeTotal(policy)), "node"), ", ",
                CountOf(GpuTotal(policy), "GPU"), types.empty() ? "" : StrCat(" (", Join(types, ", "), ")"));
}

void PrintJson(const std::string& file, const PolicyReading& reading, bool good, Output& out) {
  JsonWriter json;
  json.BeginObject().Field("file", file).Field("good", good);
  if (good) {
    json.Field("labs", reading.policy.labs.size()).Field("partitions", reading.policy.partitions.size());
    json.Field("nodes", NodeTotal(reading.policy)).Field("gpus", GpuTotal(reading.policy));
  }
  json.Key("problems").BeginArray();
  for (const PolicyProblem& problem : reading.problems) {
    json.BeginObject().Field("line", problem.line).Field("warning", problem.warning);
    json.Field("message", problem.message).Field("hint", problem.hint).EndObject();
  }
  out.Json(json.EndArray().EndObject().Text());
}

Result<int> RunPolicyCheck(World& world, const Args& args) {
  const std::string& file = args.words()[0];
  OC_TRY(reading, LookAtPolicyFile(file));
  int errors = 0;
  for (const PolicyProblem& problem : reading.problems) errors += problem.warning ? 0 : 1;
  if (world.out().json()) {
    PrintJson(file, reading, errors == 0, world.out());
    return errors == 0 ? 0 : ExitStatus(ErrorCode::kUsage);
  }
  for (const PolicyProblem& problem : reading.problems) {
    const std::string hint = problem.hint.empty() ? "" : StrCat(" (", problem.hint, ")");
    world.out().Line(StrCat(ProblemText(problem, file), problem.warning ? " [warning]" : "", hint));
  }
  if (errors == 0) world.out().Line(StrCat("good: ", Summary(reading.policy)));
  return errors == 0 ? 0 : ExitStatus(ErrorCode::kUsage);
}

}  // namespace

constinit const Command kPolicyCheck = {
    .name = "policy check",
    .summary = "whether a policy file is right; everything that is wrong, with its line",
    .usage = "FILE",
    .min_words = 1,
    .max_words = 1,
    .run = RunPolicyCheck,
    .group = CommandGroup::kSetup,
    .without_config = true,
};

}  // namespace overcap::cli
