// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/accounts_text.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

constexpr int kMostCap = 1'000'000'000;

enum AssociationColumn {
  kCluster,
  kAccount,
  kParent,
  kUser,
  kPartition,
  kGrpTres,
  kGrpJobs,
  kAssociationColumns
};
constexpr std::string_view kAssociationFormat =
    "format=Cluster,Account,ParentName,User,Partition,GrpTRES,GrpJobs";

enum QosColumn {
  kName,
  kPreempt,
  kQosTres,
  kQosJobs,
  kPerUser,
  kPerAccount,
  kJobsPerUser,
  kMaxWall,
  kGrace,
  kExempt,
  kQosColumns
};
constexpr std::string_view kQosFormat =
    "format=Name,Preempt,GrpTRES,GrpJobs,MaxTRESPU,MaxTRESPA,MaxJobsPU,MaxWall,GraceTime,PreemptExemptTime";

enum UserColumn { kUserName, kDefaultAccount, kUserColumns };
constexpr std::string_view kUserFormat = "format=User,DefaultAccount";

std::vector<std::string> Show(std::string_view what, std::string_view format) {
  return {"sacctmgr", "--noheader",      "--parsable2",      "--readonly",
          "show",     std::string(what), std::string(format)};
}

std::optional<int> SmallLimit(std::string_view text) {
  const auto value = ParseInt(text);
  if (!value || *value < 0 || *value > kMostCap) return std::nullopt;
  return static_cast<int>(*value);
}

int64_t LimitSeconds(std::string_view text) {
  const auto seconds = ParseSlurmDuration(text);
  return seconds && *seconds != kSlurmUnlimited ? *seconds : 0;
}

// Gives every row's fields to `take`.
template <typename Take>
Result<void> ForEachRow(std::string_view text, size_t columns, Take take) {
  for (size_t row = 1; !text.empty(); ++row) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::vector<std::string> fields = Split(line, '|');
    if (end == std::string_view::npos || fields.size() != columns) {
      return Fail(ErrorCode::kCorrupt, StrCat("sacctmgr: the answer is cut off or garbled in row ", row));
    }
    text.remove_prefix(end + 1);
    take(fields);
  }
  return {};
}

}  // namespace

std::vector<std::string> AssociationsCommand() {
  return Show("associations", kAssociationFormat);
}

std::vector<std::string> QosCommand() {
  return Show("qos", kQosFormat);
}

std::vector<std::string> UsersCommand() {
  return Show("users", kUserFormat);
}

SlurmCap ParseSlurmCap(std::string_view tres) {
  constexpr std::string_view kGpu = "gres/gpu";
  SlurmCap cap;
  for (const std::string& entry : Split(tres, ',')) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = std::string_view(entry).substr(0, equals);
    const auto count = SmallLimit(std::string_view(entry).substr(std::min(equals + 1, entry.size())));
    if (!count) continue;
    if (name == "cpu") cap.cpus = count;
    if (name == kGpu) cap.gpus = count;
    const bool typed =
        name.size() > kGpu.size() + 1 && name.substr(0, kGpu.size()) == kGpu && name[kGpu.size()] == ':';
    if (typed) cap.gpu_types.push_back({std::string(name.substr(kGpu.size() + 1)), *count});
  }
  return cap;
}

Result<std::vector<SlurmAssociation>> ParseAssociations(std::string_view text) {
  std::vector<SlurmAssociation> rows;
  OC_TRY_VOID(ForEachRow(text, kAssociationColumns, [&](const std::vector<std::string>& fields) {
    rows.push_back({fields[kCluster], fields[kAccount], fields[kParent], fields[kUser], fields[kPartition],
                    ParseSlurmCap(fields[kGrpTres]), SmallLimit(fields[kGrpJobs])});
  }));
  return rows;
}

Result<std::vector<SlurmQos>> ParseQos(std::string_view text) {
  std::vector<SlurmQos> rows;
  OC_TRY_VOID(ForEachRow(text, kQosColumns, [&](const std::vector<std::string>& fields) {
    SlurmQos qos;
    qos.name = fields[kName];
    if (!fields[kPreempt].empty()) qos.preempts = Split(fields[kPreempt], ',');
    qos.cap = ParseSlurmCap(fields[kQosTres]);
    qos.per_user = ParseSlurmCap(fields[kPerUser]);
    qos.per_account = ParseSlurmCap(fields[kPerAccount]);
    qos.max_jobs = SmallLimit(fields[kQosJobs]);
    qos.jobs_per_user = SmallLimit(fields[kJobsPerUser]);
    qos.max_time_s = LimitSeconds(fields[kMaxWall]);
    qos.grace_s = LimitSeconds(fields[kGrace]);
    qos.exempt_s = LimitSeconds(fields[kExempt]);
    rows.push_back(std::move(qos));
  }));
  return rows;
}

Result<std::vector<SlurmUser>> ParseUsers(std::string_view text) {
  std::vector<SlurmUser> rows;
  OC_TRY_VOID(ForEachRow(text, kUserColumns, [&](const std::vector<std::string>& fields) {
    rows.push_back({fields[kUserName], fields[kDefaultAccount]});
  }));
  return rows;
}

bool SaysThereAreNoAccounts(const std::vector<std::string>& argv, const ToolAnswer& answer) {
  return argv[0] == "sacctmgr" && !answer.end.ok() &&
         answer.err.find("not running a supported accounting_storage plugin") != std::string::npos;
}

}  // namespace overcap
