// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/policy_changes.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

// What is told of one thing, key by key and in the words of the file.
using Words = std::vector<std::pair<std::string_view, std::string>>;

std::string Number(const std::optional<int>& limit) {
  return limit ? StrCat(*limit) : "none";
}

std::string Plain(double number) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::string Time(int64_t seconds, std::string_view of_0) {
  return seconds > 0 ? FormatDuration(seconds) : std::string(of_0);
}

std::string Names(const std::vector<std::string>& names, std::string_view of_none) {
  return names.empty() ? std::string(of_none) : Join(names, " ");
}

std::string Gpus(const std::vector<TypedGpus>& gpus) {
  std::vector<std::string> words;
  for (const TypedGpus& kind : gpus) words.push_back(StrCat(kind.type, ":", kind.count));
  return Names(words, "none");
}

std::string Limits(const PolicyUserLimits& limits) {
  if (limits == PolicyUserLimits{}) return "none";
  return StrCat("gpus ", Number(limits.gpus), " cpus ", Number(limits.cpus), " jobs ", Number(limits.jobs));
}

std::string UserLimits(const std::map<std::string, PolicyUserLimits>& limits) {
  std::vector<std::string> words;
  for (const auto& [user, own] : limits) words.push_back(StrCat(user, " (", Limits(own), ")"));
  return Names(words, "none");
}

Words Tell(const PolicyNodes& nodes) {
  return {{"gpus", Gpus(nodes.gpus)},
          {"cpus", StrCat(nodes.cpus)},
          {"cpus_per_gpu", StrCat(nodes.cpus_per_gpu)},
          {"mem", nodes.mem_bytes > 0 ? FormatBytes(nodes.mem_bytes) : "none"},
          {"features", Names(nodes.features, "none")}};
}

Words Tell(const PolicyLab& lab) {
  return {{"gpus", StrCat(lab.gpu_cap)},         {"gpus by type", Gpus(lab.type_caps)},
          {"cpus", Number(lab.cpu_cap)},         {"members", Names(lab.members, "none")},
          {"admins", Names(lab.admins, "none")}, {"shares", Plain(lab.shares)},
          {"per_user", Limits(lab.per_user)},    {"user_limits", UserLimits(lab.user_limits)}};
}

Words Tell(const PolicyPartition& one) {
  return {
      {"priority", StrCat(one.priority)},
      {"max_time", Time(one.max_time_s, "none")},
      {"default_time", one.default_time_s == one.max_time_s ? "max_time" : Time(one.default_time_s, "none")},
      {"counts", std::string(CapRuleName(one.counts))},
      {"gpus_per_user", Number(one.per_user.gpus)},
      {"cpus_per_user", Number(one.per_user.cpus)},
      {"jobs_per_user", Number(one.per_user.jobs)},
      {"gpus_per_job", Number(one.gpus_per_job)},
      {"nodes_per_job", Number(one.nodes_per_job)},
      {"cpus_per_gpu", one.cpus_per_gpu > 0 ? StrCat(one.cpus_per_gpu) : "those of the node"},
      {"mem_per_gpu", one.mem_per_gpu > 0 ? FormatBytes(one.mem_per_gpu) : "none"},
      {"preempted_by", Names(one.preempted_by, "none")},
      {"labmates_only", one.labmates_only ? "yes" : "no"},
      {"grace", Time(one.grace_s, "0")},
      {"quantum", Time(one.quantum_s, "0")},
      {"charge", Plain(one.charge)},
      {"labs", Names(one.labs, "all")},
      {"users", Names(one.users, "all")},
      {"nodes", Names(one.nodes, "all")},
      {"default", one.is_default ? "yes" : "no"}};
}

Words Tell(const PolicyMaintenance& one) {
  return {{"nodes", Names(one.nodes, "all")},
          {"start", FormatTimeUtc(one.start_us)},
          {"end", FormatTimeUtc(one.end_us)}};
}

Words TellRest(const Policy& policy) {
  std::vector<std::string> defaults;
  for (const auto& [user, lab] : policy.default_labs) defaults.push_back(StrCat(user, " ", lab));
  const PolicyWeights& weights = policy.weights;
  return {{"cluster", policy.cluster.empty() ? "none" : policy.cluster},
          {"default_lab", defaults.empty() ? "none" : Join(defaults, ", ")},
          {"admins", Names(policy.admins, "none")},
          {"oversubscribe", policy.oversubscribe ? "yes" : "no"},
          {"weight lab_share", StrCat(weights.lab_share)},
          {"weight user_share", StrCat(weights.user_share)},
          {"weight age", StrCat(weights.age)},
          {"weight size", StrCat(weights.size)},
          {"age_full", Time(weights.age_full_s, "none")},
          {"lab_half_life", Time(weights.lab_half_life_s, "none")},
          {"user_half_life", Time(weights.user_half_life_s, "none")}};
}

std::vector<std::string> Differences(const Words& now, const Words& wanted) {
  std::vector<std::string> words;
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].second != wanted[i].second)
      words.push_back(StrCat(now[i].first, " ", now[i].second, " -> ", wanted[i].second));
  }
  return words;
}

// What stands out: the first, and whatever is another than where nothing is said.
std::string Telling(const Words& words, const Words& plain) {
  std::vector<std::string> told;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == 0 || words[i].second != plain[i].second)
      told.push_back(StrCat(words[i].first, " ", words[i].second));
  }
  return Join(told, ", ");
}

// Of two lists of things with names: what went, what came, what is told otherwise.
template <typename Thing>
void Differ(std::string_view what, const std::vector<Thing>& now, const std::vector<Thing>& wanted,
            std::string Thing::*name, std::vector<std::string>* lines) {
  const auto find = [&](const std::vector<Thing>& in, const std::string& called) {
    return std::ranges::find(in, called, name);
  };
  for (const Thing& old : now) {
    if (find(wanted, old.*name) == wanted.end())
      lines->push_back(StrCat("remove ", what, " '", old.*name, "'"));
  }
  for (const Thing& one : wanted) {
    const auto old = find(now, one.*name);
    if (old == now.end()) {
      lines->push_back(StrCat("add ", what, " '", one.*name, "': ", Telling(Tell(one), Tell(Thing()))));
    } else if (const auto words = Differences(Tell(*old), Tell(one)); !words.empty()) {
      lines->push_back(StrCat(what, " '", one.*name, "': ", Join(words, ", ")));
    }
  }
}

}  // namespace

std::vector<std::string> PolicyChanges(const Policy* now, const Policy& wanted) {
  const Policy none;
  const Policy& old = now == nullptr ? none : *now;
  std::vector<std::string> lines;
  Differ("nodes", old.nodes, wanted.nodes, &PolicyNodes::hosts, &lines);
  Differ("lab", old.labs, wanted.labs, &PolicyLab::name, &lines);
  Differ("partition", old.partitions, wanted.partitions, &PolicyPartition::name, &lines);
  Differ("maintenance", old.maintenance, wanted.maintenance, &PolicyMaintenance::name, &lines);
  for (std::string& line : Differences(TellRest(old), TellRest(wanted))) lines.push_back(std::move(line));
  if (lines.empty()) lines.emplace_back("keep the new text of the file: it says the same");
  return lines;
}

}  // namespace overcap
