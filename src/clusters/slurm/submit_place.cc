// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/submit_place.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/lab_accounts.h"

namespace overcap {
namespace {

using Names = std::vector<std::string>;

bool Contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Those that are named; empty when one of them is not known.
std::vector<const SlurmPartition*> Named(const SubmitPlace& named,
                                         const std::vector<SlurmPartition>& partitions) {
  std::vector<const SlurmPartition*> found;
  for (const std::string& name : named.partitions) {
    const auto one = std::ranges::find(partitions, name, &SlurmPartition::name);
    if (one == partitions.end()) return {};
    found.push_back(&*one);
  }
  return found;
}

bool AllTake(const std::vector<const SlurmPartition*>& partitions, const std::string& account) {
  return std::ranges::all_of(partitions, [&](const SlurmPartition* one) {
    return one->allowed_accounts.empty() || Contains(one->allowed_accounts, account);
  });
}

// The QOS that all of them let in; `any`: they let in every one.
Names CommonQos(const std::vector<const SlurmPartition*>& partitions, bool* any) {
  Names common;
  *any = true;
  for (const SlurmPartition* one : partitions) {
    if (one->allowed_qos.empty()) continue;
    if (*any) common = one->allowed_qos;
    *any = false;
    std::erase_if(common, [&](const std::string& name) { return !Contains(one->allowed_qos, name); });
  }
  return common;
}

// A QOS of the lab's is called as the lab, which is its default one, or LAB-PARTITION.
std::string QosOfLab(const std::string& lab, const Names& common,
                     const std::vector<SlurmPartition>& partitions) {
  if (Contains(common, lab)) return "";
  if (common.size() == 1) return common[0];
  Names own;
  for (const SlurmPartition& one : partitions) {
    if (const std::string name = StrCat(lab, "-", one.name); Contains(common, name)) own.push_back(name);
  }
  return own.size() == 1 ? own[0] : "";
}

}  // namespace

bool PlaceMatters(const SubmitPlace& named, const std::vector<SlurmPartition>& partitions) {
  const auto found = Named(named, partitions);
  return std::ranges::any_of(found, [](const SlurmPartition* one) {
    return !one->allowed_accounts.empty() || !one->allowed_qos.empty();
  });
}

SubmitPlace ChoosePlace(const SubmitPlace& named, const std::vector<SlurmPartition>& partitions,
                        const std::string& default_account) {
  SubmitPlace chosen = named;
  const auto found = Named(named, partitions);
  const std::string& lab = named.account.empty() ? default_account : named.account;
  if (found.empty() || lab.empty()) return chosen;
  const std::string second = OvercapAccount(lab);
  if (!AllTake(found, lab) && AllTake(found, second)) chosen.account = second;
  bool any = false;
  const Names common = CommonQos(found, &any);
  if (chosen.qos.empty() && !any) chosen.qos = QosOfLab(lab, common, partitions);
  return chosen;
}

}  // namespace overcap
