// SPDX-License-Identifier: Apache-2.0
#include "control/simulate/simulation.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "control/policy_file.h"
#include "sched/trace/trace_fields.h"

namespace overcap {
namespace {

using pooled::GroupReport;

void WriteGroup(const GroupReport& group, bool lab, JsonWriter* json) {
  json->BeginObject().Field("name", group.name);
  if (lab) json->Field("gpu_cap", group.gpu_cap);
  json->Field("jobs", group.jobs).Field("preemptions", group.preemptions);
  json->Key("wait_s").BeginObject().Field("mean", group.wait_mean_s).Field("p50", group.wait_p50_s);
  json->Field("p90", group.wait_p90_s).Field("p99", group.wait_p99_s).EndObject();
  json->Key("slowdown").BeginObject().Field("mean", group.slowdown_mean).Field("p50", group.slowdown_p50);
  json->Field("p90", group.slowdown_p90).EndObject();
  json->Field("gpu_hours", group.gpu_hours).Field("overcap_gpu_hours", group.overcap_gpu_hours);
  json->Field("lost_gpu_hours", group.lost_gpu_hours).EndObject();
}

void WriteGroups(const char* key, const std::vector<GroupReport>& groups, bool labs, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const GroupReport& group : groups) WriteGroup(group, labs, json);
  json->EndArray();
}

void WriteOne(const Simulation& simulation, JsonWriter* json) {
  const pooled::ReplayReport& report = simulation.report;
  json->Field("policy", simulation.policy).Field("trace", simulation.trace);
  json->Field("pool_gpus", report.pool_gpus).Field("span_s", report.span_s);
  json->Field("utilisation", report.utilisation)
      .Field("utilisation_while_submitting", report.use_while_waited);
  json->Key("fairness")
      .BeginObject()
      .Field("labs", report.lab_fairness)
      .Field("users", report.user_fairness)
      .EndObject();
  json->Field("skipped", report.skipped)
      .Field("never_started", report.never_started)
      .Field("notes", report.notes);
  json->Key("all");
  WriteGroup(report.all, false, json);
  WriteGroups("labs", report.labs, true, json);
  WriteGroups("users", report.users, false, json);
}

}  // namespace

Result<Simulation> Simulate(const std::string& policy_file, const std::string& trace_file, const Trace& trace,
                            const pooled::ReplayOptions& options) {
  OC_TRY(policy, ReadPolicyFile(policy_file));
  OC_TRY(replayed, pooled::Replay(policy, trace, options));
  return Simulation{policy_file, trace_file, pooled::ReportOf(replayed, trace)};
}

Result<double> ParseScale(std::string_view text) {
  const auto number = text.empty() ? std::optional<double>(1) : TraceNumber(text);
  if (!number || *number <= 0 || *number > 1000)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(text), " is no number above 0 and up to 1000"));
  return *number;
}

std::vector<LabPair> LabPairs(const Simulation& now, const Simulation& before) {
  std::vector<LabPair> pairs;
  for (const GroupReport& lab : now.report.labs) pairs.push_back({lab.name, lab, {}});
  for (const GroupReport& lab : before.report.labs) {
    auto pair = std::ranges::find(pairs, lab.name, &LabPair::name);
    if (pair == pairs.end()) pair = pairs.insert(pair, {lab.name, {}, {}});
    pair->before = lab;
  }
  return pairs;
}

std::string SimulationToJson(const Simulation& simulation, const Simulation* against) {
  JsonWriter json;
  json.BeginObject();
  WriteOne(simulation, &json);
  if (against != nullptr) {
    json.Key("against").BeginObject();
    WriteOne(*against, &json);
    json.EndObject();
    json.Key("difference").BeginArray();
    for (const auto& [name, lab, before] : LabPairs(simulation, *against)) {
      json.BeginObject().Field("name", name).Field("jobs", lab.jobs - before.jobs);
      const bool both = lab.jobs > 0 && before.jobs > 0;
      const auto compared = [&](std::string_view key, double now, double then) {
        both ? json.Field(key, now - then) : json.Key(key).Null();
      };
      compared("wait_mean_s", lab.wait_mean_s, before.wait_mean_s);
      compared("wait_p90_s", lab.wait_p90_s, before.wait_p90_s);
      compared("slowdown_mean", lab.slowdown_mean, before.slowdown_mean);
      json.Field("preemptions", lab.preemptions - before.preemptions);
      json.Field("gpu_hours", lab.gpu_hours - before.gpu_hours);
      json.Field("lost_gpu_hours", lab.lost_gpu_hours - before.lost_gpu_hours).EndObject();
    }
    json.EndArray();
  }
  return json.EndObject().Take();
}

}  // namespace overcap
