// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/live_policy.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "clusters/slurm/sinfo_text.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

enum QosColumn {
  kName,
  kPriority,
  kPreempt,
  kPreemptMode,
  kExempt,
  kGrace,
  kCap,
  kPerUser,
  kPerJob,
  kJobsPerUser,
  kMaxWall,
  kUsageFactor,
  kQosColumns
};
constexpr const char* kQosFormat =
    "format=Name,Priority,Preempt,PreemptMode,PreemptExemptTime,GraceTime,GrpTRES,MaxTRESPU,MaxTRES,"
    "MaxJobsPU,"
    "MaxWall,"
    "UsageFactor";

enum AssociationColumn {
  kAccount,
  kParent,
  kUser,
  kPartition,
  kShare,
  kGrpTres,
  kQos,
  kDefaultQos,
  kAssociationColumns
};
constexpr const char* kAssociationFormat =
    "format=Account,ParentName,User,Partition,Share,GrpTRES,QOS,DefaultQOS";

std::vector<std::string> Show(std::vector<std::string> words) {
  std::vector<std::string> argv = {"sacctmgr", "--noheader", "--parsable2", "--readonly", "show"};
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

tl::unexpected<Error> Garbled(const char* program, size_t row) {
  return Fail(ErrorCode::kCorrupt, StrCat(program, ": the answer is cut off or garbled in row ", row));
}

// Gives the fields of every row to `take`.
template <typename Take>
Result<void> ForEachRow(std::string_view text, size_t columns, Take take, const char* program = "sacctmgr") {
  for (size_t row = 1; !text.empty(); ++row) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return Garbled(program, row);
    const std::vector<std::string> fields = Split(text.substr(0, end), '|');
    if (fields.size() != columns || fields[0].empty()) return Garbled(program, row);
    text.remove_prefix(end + 1);
    take(fields);
  }
  return {};
}

std::vector<std::string> NamesOf(std::string_view text) {
  std::vector<std::string> names;
  for (std::string& name : Split(text, ',')) {
    if (!name.empty()) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

int64_t SecondsOf(std::string_view text) {
  const auto seconds = ParseSlurmDuration(text);
  return seconds && *seconds != kSlurmUnlimited ? *seconds : 0;
}

double FactorOf(const std::string& text) {
  double factor = 1;
  std::from_chars(text.data(), text.data() + text.size(), factor);
  return factor;
}

PlannedQos QosOfRow(const std::vector<std::string>& row) {
  PlannedQos qos;
  qos.name = row[kName];
  qos.priority = static_cast<int>(std::clamp<long long>(ParseInt(row[kPriority]).value_or(0), 0, INT32_MAX));
  qos.preempt = NamesOf(row[kPreempt]);
  qos.requeue = row[kPreemptMode].find("requeue") != std::string::npos;
  qos.exempt_s = SecondsOf(row[kExempt]);
  qos.grace_s = SecondsOf(row[kGrace]);
  qos.cap = ParseTresLimits(row[kCap]);
  qos.per_user = ParseTresLimits(row[kPerUser]);
  qos.per_job = ParseTresLimits(row[kPerJob]);
  qos.jobs_per_user = ParseInt(row[kJobsPerUser]).value_or(-1);
  qos.max_wall_s = SecondsOf(row[kMaxWall]);
  qos.usage_factor = FactorOf(row[kUsageFactor]);
  return qos;
}

PlannedAccount* Account(std::vector<PlannedAccount>* accounts, const std::string& name) {
  const auto found = std::ranges::find(*accounts, name, &PlannedAccount::name);
  if (found != accounts->end()) return &*found;
  accounts->emplace_back().name = name;
  return &accounts->back();
}

void TakeAssociation(const std::vector<std::string>& row, std::vector<PlannedAccount>* accounts) {
  if (!row[kPartition].empty()) return;
  PlannedAccount* account = Account(accounts, row[kAccount]);
  if (!row[kUser].empty()) {
    account->users.push_back(row[kUser]);
    return;
  }
  account->parent = row[kParent];
  account->shares =
      static_cast<int>(std::clamp<long long>(ParseInt(row[kShare]).value_or(-1), -1, INT32_MAX));
  account->cap = ParseTresLimits(row[kGrpTres]);
  account->qos = NamesOf(row[kQos]);
  account->default_qos = row[kDefaultQos];
}

// The fields of lines "Name=value Name=value"; a value goes to the next blank.
template <typename Take>
Result<void> ForEachLine(std::string_view text, std::string_view start, Take take) {
  for (size_t row = 1; !text.empty(); ++row) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return Garbled("scontrol", row);
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (line.empty()) continue;
    if (!line.starts_with(start)) return Garbled("scontrol", row);
    SlurmFields fields;
    for (const std::string& field : Split(line, ' ')) {
      const size_t equals = field.find('=');
      if (equals != std::string::npos) fields.emplace(field.substr(0, equals), field.substr(equals + 1));
    }
    take(fields);
  }
  return {};
}

}  // namespace

TresLimits ParseTresLimits(std::string_view text) {
  TresLimits limits;
  for (const std::string& part : Split(text, ',')) {
    const size_t equals = part.rfind('=');
    if (equals == std::string::npos || equals == 0) continue;
    const auto count = ParseInt(std::string_view(part).substr(equals + 1));
    if (count && *count >= 0) limits[part.substr(0, equals)] = *count;
  }
  return limits;
}

std::vector<std::string> PolicyQosCommand() {
  return Show({"qos", kQosFormat});
}

std::vector<std::string> PolicyAssociationsCommand(std::string_view cluster) {
  return Show({"associations", "where", StrCat("cluster=", cluster), kAssociationFormat});
}

std::vector<std::string> CoordinatorsCommand() {
  return Show({"account", "withcoord", "format=Account,Coordinators"});
}

std::vector<std::string> PolicyUsersCommand() {
  return Show({"user", "format=User,DefaultAccount,AdminLevel"});
}

std::vector<std::string> ReservationsCommand() {
  return {"scontrol", "--oneliner", "show", "reservation"};
}

std::vector<std::string> PolicyNodesCommand() {
  return {"scontrol", "--all", "--oneliner", "show", "node"};
}

std::vector<std::string> PolicyJobsCommand() {
  return {"squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING,SUSPENDED", "--format=%i|%a|%q|%T"};
}

Result<std::vector<PlannedQos>> ParsePolicyQos(std::string_view text) {
  std::vector<PlannedQos> qos;
  OC_TRY_VOID(ForEachRow(text, kQosColumns, [&](const auto& row) { qos.push_back(QosOfRow(row)); }));
  return qos;
}

Result<std::vector<PlannedAccount>> ParsePolicyAssociations(std::string_view text) {
  std::vector<PlannedAccount> accounts;
  OC_TRY_VOID(
      ForEachRow(text, kAssociationColumns, [&](const auto& row) { TakeAssociation(row, &accounts); }));
  for (PlannedAccount& account : accounts) std::ranges::sort(account.users);
  return accounts;
}

Result<std::map<std::string, std::vector<std::string>>> ParseCoordinators(std::string_view text) {
  std::map<std::string, std::vector<std::string>> coordinators;
  OC_TRY_VOID(ForEachRow(text, 2, [&](const auto& row) { coordinators[row[0]] = NamesOf(row[1]); }));
  return coordinators;
}

Result<std::map<std::string, LiveUser>> ParsePolicyUsers(std::string_view text) {
  std::map<std::string, LiveUser> users;
  OC_TRY_VOID(ForEachRow(text, 3, [&](const auto& row) { users[row[0]] = {row[1], row[2]}; }));
  return users;
}

// "12_[3-5%2]": without the most that may run at once, which is no part of the name.
Result<std::vector<LiveJob>> ParsePolicyJobs(std::string_view text) {
  std::vector<LiveJob> jobs;
  OC_TRY_VOID(ForEachRow(
      text, 4,
      [&](const std::vector<std::string>& row) {
        std::string id = row[0];
        if (const size_t limit = id.find('%'); limit != std::string::npos) id = id.substr(0, limit) + "]";
        jobs.push_back({std::move(id), row[1], row[2], row[3] == "PENDING"});
      },
      "squeue"));
  return jobs;
}

Result<std::map<std::string, SlurmFields>> ParsePartitionFields(std::string_view text) {
  std::map<std::string, SlurmFields> partitions;
  if (Trim(text) == "No partitions in the system") return partitions;
  OC_TRY_VOID(ForEachLine(text, "PartitionName=", [&](const SlurmFields& fields) {
    partitions[fields.at("PartitionName")] = fields;
  }));
  return partitions;
}

Result<std::map<std::string, std::vector<TypedGpus>>> ParsePolicyNodes(std::string_view text) {
  std::map<std::string, std::vector<TypedGpus>> nodes;
  if (Trim(text) == "No nodes in the system") return nodes;
  OC_TRY_VOID(ForEachLine(text, "NodeName=", [&](const SlurmFields& fields) {
    std::vector<TypedGpus>& gpus = nodes[fields.at("NodeName")];
    const auto gres = fields.find("Gres");
    if (gres == fields.end()) return;
    for (const SlurmNodeGpus& kind : ParseGpuGres(gres->second, ""))
      gpus.push_back({NormalPolicyGpuType(kind.type), kind.total});
  }));
  return nodes;
}

Result<std::vector<LiveReservation>> ParseReservations(std::string_view text) {
  std::vector<LiveReservation> reservations;
  if (Trim(text) == "No reservations in the system") return reservations;
  OC_TRY_VOID(ForEachLine(text, "ReservationName=", [&](const SlurmFields& fields) {
    const auto get = [&](std::string_view name) {
      const auto found = fields.find(name);
      return found == fields.end() ? std::string() : found->second;
    };
    reservations.push_back({get("ReservationName"), get("Nodes"),
                            ParseSlurmTime(get("StartTime")).value_or(0),
                            ParseSlurmTime(get("EndTime")).value_or(0)});
  }));
  return reservations;
}

}  // namespace overcap
