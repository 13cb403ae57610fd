// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/policy_commands.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"
#include "model/host_list.h"

namespace overcap {
namespace {

using Words = std::vector<std::string>;

Words Sacctmgr(Words words, const Words& more = {}) {
  words.insert(words.begin(), {"sacctmgr", "--immediate"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Wanted limits, and -1 for those of `live` that are not wanted; "" when they are the same.
std::string TresChange(const TresLimits& wanted, const TresLimits& live) {
  TresLimits change;
  for (const auto& [name, count] : wanted) {
    const auto found = live.find(name);
    if (found == live.end() || found->second != count) change[name] = count;
  }
  for (const auto& [name, count] : live) {
    if (!wanted.contains(name)) change[name] = -1;
  }
  return TresText(change);
}

std::string FactorText(double factor) {
  const auto millionths = std::llround(factor * 1e6);
  std::string digits = StrCat(millionths % 1'000'000);
  digits.insert(0, 6 - digits.size(), '0');
  return StrCat(millionths / 1'000'000, ".", digits);
}

std::string LimitText(int64_t limit) {
  return limit < 0 ? "-1" : StrCat(limit);
}

// Slurm keeps time limits in minutes: "HH:MM:SS" of the next whole one.
std::string WallText(int64_t seconds) {
  return seconds == 0 ? "-1" : FormatSlurmDuration((seconds + 59) / 60 * 60);
}

// What differs, as the words behind `add qos NAME` or `modify qos NAME set`.
Words QosWords(const PlannedQos& wanted, const PlannedQos& live) {
  Words words;
  const auto say = [&](const char* name, const std::string& value) {
    words.push_back(StrCat(name, "=", value));
  };
  if (wanted.priority != live.priority) say("Priority", StrCat(wanted.priority));
  if (wanted.preempt != live.preempt) say("Preempt", Join(wanted.preempt, ","));
  if (wanted.requeue != live.requeue) say("PreemptMode", wanted.requeue ? "requeue" : "cluster");
  if (wanted.grace_s != live.grace_s) say("GraceTime", StrCat(wanted.grace_s));
  if (wanted.exempt_s != live.exempt_s)
    say("PreemptExemptTime", wanted.exempt_s == 0 ? "-1" : FormatSlurmDuration(wanted.exempt_s));
  if (wanted.cap != live.cap) say("GrpTRES", TresChange(wanted.cap, live.cap));
  if (wanted.per_user != live.per_user) say("MaxTRESPerUser", TresChange(wanted.per_user, live.per_user));
  if (wanted.per_job != live.per_job) say("MaxTRESPerJob", TresChange(wanted.per_job, live.per_job));
  if (wanted.jobs_per_user != live.jobs_per_user) say("MaxJobsPerUser", LimitText(wanted.jobs_per_user));
  if ((wanted.max_wall_s + 59) / 60 != (live.max_wall_s + 59) / 60)
    say("MaxWall", WallText(wanted.max_wall_s));
  if (FactorText(wanted.usage_factor) != FactorText(live.usage_factor))
    say("UsageFactor", FactorText(wanted.usage_factor));
  return words;
}

Words AccountWords(const PlannedAccount& wanted, const PlannedAccount& live) {
  Words words;
  if (wanted.parent != live.parent) words.push_back(StrCat("Parent=", wanted.parent));
  if (wanted.shares != live.shares) words.push_back(StrCat("Fairshare=", wanted.shares));
  if (wanted.cap != live.cap) words.push_back(StrCat("GrpTRES=", TresChange(wanted.cap, live.cap)));
  // Nothing runs in an account without any, whatever it inherits.
  if (!wanted.qos.empty() && wanted.qos != live.qos) words.push_back(StrCat("QOS=", Join(wanted.qos, ",")));
  if (wanted.default_qos != live.default_qos) words.push_back(StrCat("DefaultQOS=", wanted.default_qos));
  return words;
}

std::string ClusterWord(std::string_view cluster) {
  return StrCat("Cluster=", cluster);
}

}  // namespace

std::optional<PolicyStep> QosStep(const PlannedQos& wanted, const PlannedQos* live) {
  const Words words = QosWords(wanted, live == nullptr ? PlannedQos{} : *live);
  if (live == nullptr) {
    return PolicyStep{StrCat("add qos '", wanted.name, "': ", words.empty() ? "no limits" : Join(words, " ")),
                      Sacctmgr({"add", "qos", wanted.name}, words)};
  }
  if (words.empty()) return std::nullopt;
  return PolicyStep{StrCat("change qos '", wanted.name, "': ", Join(words, " ")),
                    Sacctmgr({"modify", "qos", wanted.name, "set"}, words)};
}

std::optional<PolicyStep> AccountStep(const PlannedAccount& wanted, const PlannedAccount* live,
                                      std::string_view cluster) {
  PlannedAccount nothing;
  nothing.shares = -1;
  Words words = AccountWords(wanted, live == nullptr ? nothing : *live);
  if (words.empty()) return std::nullopt;
  const std::string said = StrCat("account '", wanted.name, "': ", Join(words, " "));
  if (live == nullptr) {
    words.push_back(ClusterWord(cluster));
    return PolicyStep{StrCat("add ", said), Sacctmgr({"add", "account", wanted.name}, words)};
  }
  words.insert(words.end(), {"where", ClusterWord(cluster)});
  return PolicyStep{StrCat("change ", said), Sacctmgr({"modify", "account", wanted.name, "set"}, words)};
}

std::optional<PolicyStep> ReservationStep(const PolicyMaintenance& wanted, const Words& all_nodes,
                                          const LiveReservation* live) {
  constexpr int64_t kSecond = 1'000'000;
  Words nodes = wanted.nodes.empty() ? all_nodes : wanted.nodes;
  std::ranges::sort(nodes);
  if (live != nullptr) {
    const auto there = ExpandHostList(live->nodes);
    Words sorted = there ? *there : Words{};
    std::ranges::sort(sorted);
    if (sorted == nodes && live->start_us / kSecond == wanted.start_us / kSecond &&
        live->end_us / kSecond == wanted.end_us / kSecond)
      return std::nullopt;
  }
  const std::string list = CompressHostList(nodes, HostListStyle::kSlurm);
  const std::string start = FormatSlurmTime(wanted.start_us), end = FormatSlurmTime(wanted.end_us);
  PolicyStep step;
  step.text = StrCat(live == nullptr ? "add" : "change", " maintenance '", wanted.name, "' of ", list,
                     " from ", start, " to ", end);
  if (live == nullptr)
    step.argv = {"scontrol", "create", "reservation"};
  else
    step.argv = {"scontrol", "update"};
  for (std::string word : {StrCat("ReservationName=", wanted.name), StrCat("StartTime=", start),
                           StrCat("EndTime=", end), StrCat("Nodes=", list)})
    step.argv.push_back(std::move(word));
  if (live == nullptr) step.argv.insert(step.argv.end(), {"Users=root", "Flags=MAINT,IGNORE_JOBS"});
  return step;
}

PolicyStep AddUsersStep(const std::string& account, const Words& users, std::string_view cluster) {
  return {StrCat("add to account '", account, "': ", Join(users, ", ")),
          Sacctmgr({"add", "user", Join(users, ","), StrCat("Account=", account), ClusterWord(cluster)})};
}

PolicyStep RemoveUsersStep(const std::string& account, const Words& users, std::string_view cluster) {
  return {StrCat("remove from account '", account, "': ", Join(users, ", ")),
          Sacctmgr({"delete", "user", "where", StrCat("Name=", Join(users, ",")), StrCat("Account=", account),
                    ClusterWord(cluster)}),
          true};
}

PolicyStep DefaultAccountStep(const std::string& user, const std::string& account, std::string_view cluster) {
  return {StrCat("user '", user, "' has the default account '", account, "'"),
          Sacctmgr({"modify", "user", "where", StrCat("Name=", user), ClusterWord(cluster), "set",
                    StrCat("DefaultAccount=", account)})};
}

PolicyStep MoveJobStep(const std::string& job, const std::string& account) {
  return {StrCat("move job '", job, "' to account '", account, "'"),
          {"scontrol", "update", StrCat("JobId=", job), StrCat("Account=", account)},
          true};
}

PolicyStep AdminStep(const std::string& user) {
  return {StrCat("user '", user, "' is an administrator"),
          Sacctmgr({"modify", "user", "where", StrCat("Name=", user), "set", "AdminLevel=Administrator"})};
}

PolicyStep CoordinatorsStep(const std::string& account, const Words& users, bool add) {
  return {StrCat(add ? "" : "no longer ", "admins of account '", account, "': ", Join(users, ", ")),
          Sacctmgr({add ? "add" : "delete", "coordinator", StrCat("Account=", account),
                    StrCat("Names=", Join(users, ","))})};
}

}  // namespace overcap
