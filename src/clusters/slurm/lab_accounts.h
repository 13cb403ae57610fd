// SPDX-License-Identifier: Apache-2.0
// The accounts of a lab (adr/0010): what counts against its cap runs in one that is called as the lab, what
// does not in a second one beside it, and both stand below a third without members, so that fair share knows
// the lab. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clusters/slurm/accounts_text.h"
#include "model/cluster_picture.h"

namespace overcap {

std::string OvercapAccount(std::string_view lab);  // "vision-overcap"
std::string ParentAccount(std::string_view lab);   // "vision-lab"

// Which accounts of a cluster are the second and third one of a lab. By their names and by their places in
// the tree: an account that is only called so is a lab of its own.
class LabAccounts {
 public:
  LabAccounts() = default;
  explicit LabAccounts(const std::vector<SlurmAssociation>& associations);

  bool empty() const { return labs_.empty(); }  // no lab has more than one
  bool IsOvercap(std::string_view account) const { return labs_.contains(account); }
  bool IsParent(std::string_view account) const { return parents_.contains(account); }
  // The lab whose jobs are those of the account: "vision" of "vision-overcap", else the account itself.
  std::string LabOf(std::string_view account) const;
  // The account above a lab, those of its own left out; "": none.
  std::string AboveLab(std::string_view parent) const;

 private:
  std::map<std::string, std::string, std::less<>> labs_;     // by overcap account
  std::map<std::string, std::string, std::less<>> parents_;  // what stands above them
};

// What an account is called in the picture, which knows labs: "vision" of "vision-overcap".
std::string LabInPicture(const ClusterPicture& picture, const std::string& account);

}  // namespace overcap
