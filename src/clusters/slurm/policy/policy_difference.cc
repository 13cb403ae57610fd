// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/policy_difference.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"
#include "clusters/slurm/lab_accounts.h"
#include "clusters/slurm/policy/policy_commands.h"
#include "clusters/slurm/policy/setting_difference.h"
#include "model/host_list.h"

namespace overcap {
namespace {

using Names = std::vector<std::string>;

template <typename T>
const T* FindNamed(const std::vector<T>& things, const std::string& name) {
  const auto found = std::ranges::find(things, name, &T::name);
  return found == things.end() ? nullptr : &*found;
}

// Both sorted.
Names Without(const Names& names, const Names& taken) {
  Names rest;
  std::ranges::set_difference(names, taken, std::back_inserter(rest));
  return rest;
}

class Comparer {
 public:
  Comparer(const SlurmPolicyPlan& plan, const LivePolicy& live)
      : plan_(plan), live_(live), cluster_(live.config.Get("ClusterName")) {}

  PolicyDifference Run(int64_t now_us) {
    Qos(false);
    Accounts();
    Qos(true);
    Members();
    DefaultAccounts();
    People();
    Maintenance(now_us);
    Jobs();
    Removals();
    Left();
    Settings();
    return std::move(difference_);
  }

 private:
  void Add(std::optional<PolicyStep> step) {
    if (step) difference_.steps.push_back(std::move(*step));
  }
  // A QOS loses its cap only after the accounts, which limit its jobs from then on, have theirs: apply may be
  // stopped between the two.
  void Qos(bool behind_accounts) {
    for (const PlannedQos& wanted : plan_.qos) {
      const PlannedQos* live = FindNamed(live_.qos, wanted.name);
      const bool freed = live != nullptr && !live->cap.empty() && wanted.cap.empty();
      if (freed == behind_accounts) Add(QosStep(wanted, live));
    }
  }
  void Accounts() {
    for (const PlannedAccount& wanted : plan_.accounts)
      Add(AccountStep(wanted, FindNamed(live_.accounts, wanted.name), cluster_));
  }
  Names LiveUsers(const std::string& account) const {
    const PlannedAccount* found = FindNamed(live_.accounts, account);
    return found == nullptr ? Names{} : found->users;
  }
  void Members();
  void DefaultAccounts();
  void People();
  void Maintenance(int64_t now_us);
  void Jobs();
  void Removals();
  void Left();
  void Settings();

  const SlurmPolicyPlan& plan_;
  const LivePolicy& live_;
  std::string cluster_;
  PolicyDifference difference_;
};

void Comparer::Members() {
  for (const PlannedAccount& wanted : plan_.accounts) {
    const Names missing = Without(wanted.users, LiveUsers(wanted.name));
    if (!missing.empty()) Add(AddUsersStep(wanted.name, missing, cluster_));
  }
}

// A new user's default account is the first one that was added. Somebody who is in no lab any more but in
// accounts that the policy does not name has one of those.
void Comparer::DefaultAccounts() {
  for (const PlannedAccount& other : live_.accounts) {
    if (FindNamed(plan_.accounts, other.name) != nullptr) continue;
    for (const std::string& user : other.users) {
      const auto found = live_.users.find(user);
      if (found != live_.users.end() && !plan_.default_accounts.contains(user) &&
          FindNamed(plan_.accounts, found->second.default_account) != nullptr)
        Add(DefaultAccountStep(user, other.name, cluster_));
    }
  }
  for (const auto& [user, wanted] : plan_.default_accounts) {
    const auto found = live_.users.find(user);
    std::string now = found == live_.users.end() ? "" : found->second.default_account;
    for (const PlannedAccount& account : plan_.accounts) {
      if (now.empty() && std::ranges::binary_search(account.users, user)) now = account.name;
    }
    if (now != wanted) Add(DefaultAccountStep(user, wanted, cluster_));
  }
}

void Comparer::People() {
  for (const std::string& user : plan_.admins) {
    const auto found = live_.users.find(user);
    const bool known = found != live_.users.end() || plan_.default_accounts.contains(user);
    if (found != live_.users.end() && found->second.admin_level == "Administrator") continue;
    if (known)
      Add(AdminStep(user));
    else
      difference_.notes.push_back(StrCat("admin '", user, "' is in no lab: Slurm knows nobody of that name"));
  }
  for (const PlannedAccount& wanted : plan_.accounts) {
    const PlannedAccount* live = FindNamed(live_.accounts, wanted.name);
    const Names now = live == nullptr ? Names{} : live->coordinators;
    const Names missing = Without(wanted.coordinators, now);
    if (!missing.empty()) Add(CoordinatorsStep(wanted.name, missing, true));
    const Names extra = Without(now, wanted.coordinators);
    if (!extra.empty()) Add(CoordinatorsStep(wanted.name, extra, false));
  }
}

void Comparer::Maintenance(int64_t now_us) {
  Names all;
  for (const PolicyNodes& nodes : plan_.nodes) all.insert(all.end(), nodes.names.begin(), nodes.names.end());
  for (const PolicyMaintenance& wanted : plan_.maintenance) {
    if (wanted.end_us > now_us) Add(ReservationStep(wanted, all, FindNamed(live_.reservations, wanted.name)));
  }
}

// Jobs whose QOS now belongs to the second account of their lab. A lab that has only idle GPUs runs `overcap`
// in its first account; once it may use a partition that counts, it has a second account for `overcap`. Slurm
// never starts a job that still waits in the first one.
void Comparer::Jobs() {
  std::map<std::string, int> running;
  for (const LiveJob& job : live_.jobs) {
    const PlannedAccount* account = FindNamed(plan_.accounts, job.account);
    const PlannedAccount* other = FindNamed(plan_.accounts, OvercapAccount(job.account));
    if (account == nullptr || other == nullptr || std::ranges::binary_search(account->qos, job.qos) ||
        !std::ranges::binary_search(other->qos, job.qos))
      continue;
    if (job.pending)
      Add(MoveJobStep(job.id, other->name));
    else
      ++running[job.account];
  }
  for (const auto& [account, count] : running) {
    difference_.notes.push_back(StrCat(
        CountOf(count, "running job"), " of account '", account, "' ", count == 1 ? "belongs" : "belong",
        " into '", OvercapAccount(account), "' and ", count == 1 ? "counts" : "count",
        " against the cap until then: what is preempted waits for the next apply, which moves it"));
  }
}

// Last, and each by itself: Slurm refuses to remove a user who has jobs there. It also refuses to remove the
// default account of a user who has another one.
void Comparer::Removals() {
  for (const bool of_default : {false, true}) {
    for (const PlannedAccount& wanted : plan_.accounts) {
      if (wanted.users.empty()) continue;
      for (const std::string& user : Without(LiveUsers(wanted.name), wanted.users)) {
        const auto found = live_.users.find(user);
        const bool is_default = found != live_.users.end() && found->second.default_account == wanted.name;
        if (is_default == of_default) Add(RemoveUsersStep(wanted.name, {user}, cluster_));
      }
    }
  }
}

void Comparer::Settings() {
  difference_.file = "slurm.conf";
  difference_.settings = CompareSettings(plan_, live_);
  difference_.then = std::ranges::any_of(difference_.settings, &PolicySetting::restart)
                         ? "restart slurmctld"
                         : "scontrol reconfigure";
  const Names missing = MissingNodes(plan_, live_);
  if (missing.empty()) return;
  difference_.blocked =
      Error{ErrorCode::kConflict,
            StrCat("slurm.conf has no node ", CompressHostList(missing, HostListStyle::kSlurm),
                   ": nothing was changed"),
            "add the node to slurm.conf and gres.conf ('overcap policy render slurm FILE' prints the lines), "
            "restart "
            "slurmctld, then run it again; or take the node out of the policy"};
}

void Comparer::Left() {
  const auto say = [&](const char* kind, const std::string& name) {
    difference_.notes.push_back(StrCat(kind, " '", name, "' is not in the policy and stays as it is"));
  };
  for (const PlannedAccount& live : live_.accounts) {
    if (live.name != "root" && FindNamed(plan_.accounts, live.name) == nullptr) say("account", live.name);
  }
  for (const PlannedQos& live : live_.qos) {
    if (live.name != "normal" && FindNamed(plan_.qos, live.name) == nullptr) say("qos", live.name);
  }
  for (const auto& [name, fields] : live_.partitions) {
    if (FindNamed(plan_.partitions, name) == nullptr) say("partition", name);
  }
}

}  // namespace

PolicyDifference CompareSlurmPolicy(const SlurmPolicyPlan& plan, const LivePolicy& live, int64_t now_us) {
  return Comparer(plan, live).Run(now_us);
}

}  // namespace overcap
