// SPDX-License-Identifier: Apache-2.0
#include "model/policy/policy_text.h"

#include <algorithm>

#include "base/text.h"
#include "model/policy/policy_sections.h"

namespace overcap {
namespace {

// What a later part needs of an earlier one has to be read first, wherever it stands in the file.
struct Parts {
  Policy policy;
  GpuTypeCpus cpus_per_gpu;
  std::vector<std::pair<std::string, PolicyValue>> entries;

  const PolicyValue* Find(std::string_view key) const {
    for (const auto& [name, value] : entries) {
      if (name == key) return &value;
    }
    return nullptr;
  }
};

constexpr std::string_view kKnown[] = {"nodes", "labs",   "cluster",     "cpus_per_gpu", "partitions",
                                       "users", "admins", "maintenance", "weights",      "oversubscribe"};

void CheckKeys(const Parts& parts) {
  for (const auto& [key, value] : parts.entries) {
    if (std::ranges::find(kKnown, key) == std::end(kKnown))
      UnknownPolicyKey(value, key, "", {std::begin(kKnown), std::end(kKnown)});
  }
}

void ReadParts(PolicyNotes* notes, Parts* parts) {
  Policy* policy = &parts->policy;
  if (const auto* value = parts->Find("cluster")) value->Name(&policy->cluster);
  if (const auto* value = parts->Find("oversubscribe")) value->Switch(&policy->oversubscribe);
  if (const auto* value = parts->Find("admins")) value->Users(&policy->admins);
  if (const auto* value = parts->Find("cpus_per_gpu")) ReadCpusPerGpu(*value, &parts->cpus_per_gpu);
  if (const auto* value = parts->Find("nodes"))
    ReadPolicyNodes(*value, parts->cpus_per_gpu, policy);
  else
    notes->Error(1, "there are no 'nodes'", "say which machines there are: 'nodes: {a[01-08]: a40:8}'");
  if (const auto* value = parts->Find("labs"))
    ReadPolicyLabs(*value, policy);
  else
    notes->Error(1, "there are no 'labs'", "say who owns how many GPUs: 'labs: {vision: 16 ann bob}'");
  if (const auto* value = parts->Find("users")) ReadPolicyUsers(*value, policy);
  ReadPolicyPartitions(notes, parts->Find("partitions"), policy);
  if (const auto* value = parts->Find("maintenance")) ReadPolicyMaintenance(*value, policy);
  if (const auto* value = parts->Find("weights")) ReadPolicyWeights(*value, policy);
}

// What ParseYaml() says with a file's name, as a problem of a line.
PolicyProblem ProblemOf(const Error& error, std::string_view file) {
  PolicyProblem problem{1, false, error.message, error.hint};
  const std::string_view rest = std::string_view(error.message).substr(file.size() + 1);
  const size_t colon = rest.find(':');
  if (const auto line = ParseInt(rest.substr(0, colon)); line && colon != std::string_view::npos) {
    problem.line = static_cast<int>(*line);
    problem.message = std::string(Trim(rest.substr(colon + 1)));
  }
  if (problem.message.find("flow") != std::string::npos)
    problem.hint = "is a bracket not closed? inside of { } a host list stands in quotes: \"a[01-08]\"";
  return problem;
}

}  // namespace

PolicyReading ReadPolicy(std::string_view text) {
  PolicyReading reading;
  if (text.size() > kMaxPolicyBytes) {
    reading.problems.push_back({1, false, "is larger than 4 MiB: no policy", ""});
    return reading;
  }
  const auto tree = ParseYaml(text, "policy");
  if (!tree) {
    reading.problems.push_back(ProblemOf(tree.error(), "policy"));
    return reading;
  }
  PolicyNotes notes;
  Parts parts;
  parts.entries = PolicyEntries(&notes, *tree, "");
  CheckKeys(parts);
  ReadParts(&notes, &parts);
  reading.policy = std::move(parts.policy);
  reading.problems = notes.Take();
  // A policy that was not read whole would have problems that its file has not.
  if (reading.problems.empty()) reading.problems = PolicyProblems(reading.policy);
  std::ranges::stable_sort(reading.problems, {}, &PolicyProblem::line);
  return reading;
}

Result<Policy> ParsePolicy(std::string_view text, const std::string& file) {
  PolicyReading reading = ReadPolicy(text);
  for (const PolicyProblem& problem : reading.problems) {
    if (!problem.warning) return Fail(ErrorCode::kUsage, ProblemText(problem, file), problem.hint);
  }
  return std::move(reading.policy);
}

std::string ProblemText(const PolicyProblem& problem, const std::string& file) {
  return StrCat(file, ":", std::max(1, problem.line), ": ", problem.message);
}

}  // namespace overcap
