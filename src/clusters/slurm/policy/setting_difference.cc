// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/setting_difference.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"
#include "model/host_list.h"

namespace overcap {
namespace {

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// What is the same however it is written: the order of names, host lists, case, "(null)".
std::string Canonical(std::string_view name, std::string_view value) {
  if (value == "(null)" || value == "N/A" || value == "NONE") value = {};
  if (name == "Nodes" || name == "AllowAccounts" || name == "AllowQos") {
    auto words =
        name == "Nodes" ? ExpandHostList(value) : Result<std::vector<std::string>>(Split(value, ','));
    if (!words) return std::string(value);
    std::ranges::sort(*words);
    return Join(*words, ",");
  }
  if (const auto seconds = ParseSlurmDuration(value); seconds && value.find(':') != std::string_view::npos)
    return StrCat((*seconds + 59) / 60, " min");
  return LowerCase(value);
}

std::string FieldOf(const SlurmFields& fields, std::string_view name) {
  // scontrol calls it QoS, and keeps what is for each GPU in a list.
  if (name == "DefCpuPerGPU" || name == "DefMemPerGPU") {
    const auto defaults = fields.find("JobDefaults");
    if (defaults == fields.end()) return "";
    for (const std::string& part : Split(defaults->second, ',')) {
      const size_t equals = part.find('=');
      if (equals != std::string::npos && LowerCase(part.substr(0, equals)) == LowerCase(name))
        return part.substr(equals + 1);
    }
    return "";
  }
  const auto found = fields.find(name == "QOS" ? std::string_view("QoS") : name);
  return found == fields.end() ? "" : found->second;
}

// The words that the live list has not.
std::vector<std::string> MissingWords(const PlannedSetting& setting, const SlurmConfig& live) {
  std::vector<std::string> missing;
  for (const std::string& word : Split(setting.value, ',')) {
    if (!live.HasWord(setting.name, word)) missing.push_back(word);
  }
  return missing;
}

// A list with the words that the controller has and those that the policy wants. What is in the list anyway
// and "none", which Slurm accepts only alone, are left out.
std::string MergedWords(const PlannedSetting& setting, const SlurmConfig& live) {
  static constexpr std::string_view kAlways[] = {"cpu",     "mem",     "energy", "node",
                                                 "billing", "fs/disk", "vmem",   "pages"};
  std::vector<std::string> words = Split(live.Get(setting.name), ',');
  std::erase_if(words, [&](const std::string& word) {
    return word.empty() || LowerCase(word) == "none" ||
           (setting.name == "AccountingStorageTRES" && std::ranges::find(kAlways, word) != std::end(kAlways));
  });
  for (const std::string& word : Split(setting.value, ',')) {
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return Join(words, ",");
}

std::string SettingLine(const PlannedSetting& setting, const SlurmConfig& live) {
  return StrCat(setting.name, "=", setting.words ? MergedWords(setting, live) : setting.value);
}

std::string PartitionLine(const PlannedPartition& partition) {
  std::string line = StrCat("PartitionName=", partition.name);
  for (const auto& [name, value] : partition.fields) line += StrCat(" ", name, "=", value);
  return line;
}

void CompareConfig(const SlurmPolicyPlan& plan, const SlurmConfig& live, std::vector<PolicySetting>* out) {
  for (const PlannedSetting& setting : plan.settings) {
    const std::string_view now = live.Get(setting.name);
    const auto missing = setting.words ? MissingWords(setting, live) : std::vector<std::string>();
    const bool same = setting.words ? missing.empty()
                                    : Canonical(setting.name, now) == Canonical(setting.name, setting.value);
    if (same) continue;
    const std::string why = now.empty()        ? " is not set"
                            : !missing.empty() ? StrCat(" lacks ", Join(missing, ","))
                                               : StrCat(" is ", now);
    out->push_back({setting.name + why, SettingLine(setting, live), setting.restart});
  }
}

void ComparePartitions(const SlurmPolicyPlan& plan, const LivePolicy& live, std::vector<PolicySetting>* out) {
  for (const PlannedPartition& partition : plan.partitions) {
    const auto found = live.partitions.find(partition.name);
    if (found == live.partitions.end()) {
      out->push_back({StrCat("there is no partition '", partition.name, "'"), PartitionLine(partition)});
      continue;
    }
    std::vector<std::string> different;
    for (const auto& [name, value] : partition.fields) {
      const std::string now = FieldOf(found->second, name);
      if (Canonical(name, now) != Canonical(name, value))
        different.push_back(now.empty() ? StrCat("no ", name) : StrCat(name, "=", now));
    }
    if (!different.empty())
      out->push_back(
          {StrCat("partition '", partition.name, "' has ", Join(different, ", ")), PartitionLine(partition)});
  }
}

std::string GpusText(const std::vector<TypedGpus>& gpus) {
  std::vector<std::string> parts;
  for (const TypedGpus& kind : gpus) parts.push_back(StrCat(kind.type, ":", kind.count));
  std::ranges::sort(parts);
  return Join(parts, ",");
}

// Without lines: the administrator knows the machines better than the policy does.
void CompareNodes(const SlurmPolicyPlan& plan, const LivePolicy& live, std::vector<PolicySetting>* out) {
  for (const PolicyNodes& group : plan.nodes) {
    const std::string wanted = GpusText(group.gpus);
    for (const std::string& name : group.names) {
      const auto found = live.nodes.find(name);
      const std::string now = found == live.nodes.end() ? wanted : GpusText(found->second);
      if (now != wanted)
        out->push_back({StrCat("node '", name, "' has ", now.empty() ? "no GPUs" : StrCat("GPUs ", now),
                               "; the policy says ", wanted.empty() ? "none" : wanted),
                        "", true});
    }
  }
}

}  // namespace

std::vector<PolicySetting> CompareSettings(const SlurmPolicyPlan& plan, const LivePolicy& live) {
  std::vector<PolicySetting> settings;
  CompareConfig(plan, live.config, &settings);
  CompareNodes(plan, live, &settings);
  ComparePartitions(plan, live, &settings);
  return settings;
}

std::vector<std::string> MissingNodes(const SlurmPolicyPlan& plan, const LivePolicy& live) {
  std::vector<std::string> missing;
  for (const PolicyNodes& group : plan.nodes) {
    std::ranges::copy_if(group.names, std::back_inserter(missing),
                         [&](const std::string& name) { return !live.nodes.contains(name); });
  }
  return missing;
}

std::string SettingLines(const SlurmPolicyPlan& plan) {
  std::string text;
  for (const PlannedSetting& setting : plan.settings) text += SettingLine(setting, {}) + "\n";
  for (const PlannedPartition& partition : plan.partitions) text += PartitionLine(partition) + "\n";
  return text;
}

}  // namespace overcap
