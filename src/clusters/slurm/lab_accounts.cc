// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/lab_accounts.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {

std::string OvercapAccount(std::string_view lab) {
  return StrCat(lab, "-overcap");
}

std::string ParentAccount(std::string_view lab) {
  return StrCat(lab, "-lab");
}

LabAccounts::LabAccounts(const std::vector<SlurmAssociation>& associations) {
  std::map<std::string_view, std::string_view> above;
  for (const SlurmAssociation& one : associations) {
    if (one.user.empty() && !one.account.empty()) above.try_emplace(one.account, one.parent);
  }
  const auto stands_below = [&](const std::string& account, const std::string& parent) {
    const auto found = above.find(account);
    return found != above.end() && found->second == parent;
  };
  for (const auto& [lab, parent] : above) {
    const std::string shared = ParentAccount(lab), second = OvercapAccount(lab);
    if (parent != shared || !stands_below(second, shared)) continue;
    labs_.emplace(second, lab);
    parents_.emplace(shared, above[shared]);
  }
}

std::string LabAccounts::LabOf(std::string_view account) const {
  const auto found = labs_.find(account);
  return found == labs_.end() ? std::string(account) : found->second;
}

std::string LabAccounts::AboveLab(std::string_view parent) const {
  const auto found = parents_.find(parent);
  return found == parents_.end() ? std::string(parent) : found->second;
}

std::string LabInPicture(const ClusterPicture& picture, const std::string& account) {
  if (FindLab(picture, account) != nullptr) return account;
  const auto found = std::ranges::find_if(
      picture.labs, [&](const PictureLab& lab) { return OvercapAccount(lab.name) == account; });
  return found == picture.labs.end() ? account : found->name;
}

}  // namespace overcap
