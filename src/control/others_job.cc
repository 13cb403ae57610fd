// SPDX-License-Identifier: Apache-2.0
#include "control/others_job.h"

#include <unistd.h>

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "sys/become_user.h"
#include "sys/user.h"
#include "sys/variables.h"

namespace overcap {
namespace {

Error Refusal(const JobRecord& record, const FilesCaller& caller, JobVerb verb) {
  const std::string& id = record.spec.id;
  Error error{ErrorCode::kDenied,
              StrCat("job '", id, "' belongs to user '", ToUtf8(record.spec.user), "', who alone can "), ""};
  if (verb == JobVerb::kResubmit) {
    error.message += "run it again";
    if (caller.root && caller.shared_engine)
      error.hint = ShellJoin({"sudo", "-H", "-u", record.spec.user, "overcap", "resubmit", id});
  } else if (verb == JobVerb::kEnter) {
    error.message += "run commands beside it";
  } else {
    error.message += "read its logs and code";
  }
  return error;
}

// Root can become only a user whom the machine's list knows; the rest of a user who has left is the record.
bool IsKnownUser(const std::string& name) {
  const auto uid = UserNumber(name);
  return uid && *uid != 0 && FindUser(*uid);
}

const DriverTraits* DriverOf(const Config& config, const std::string& cluster) {
  const auto found = config.clusters.find(cluster);
  return found == config.clusters.end() ? nullptr : FindDriver(found->second.driver);
}

}  // namespace

FilesRight RightToFiles(const FilesCaller& caller, JobVerb verb) {
  if (caller.owner) return FilesRight::kOwn;
  if (verb == JobVerb::kResubmit) return FilesRight::kRefused;
  if (caller.root && caller.shared_engine) return FilesRight::kAsOwner;
  const bool of_record = verb == JobVerb::kQuery || verb == JobVerb::kRemove;
  return of_record ? FilesRight::kRecordOnly : FilesRight::kRefused;
}

bool IsOthers(const JobRecord& record) {
  return record.dir.empty() && !record.spec.user.empty() && record.spec.user != UserName();
}

bool HasSharedEngine(const Config& config, const std::string& cluster) {
  const DriverTraits* driver = DriverOf(config, cluster);
  return driver != nullptr && !driver->socket.empty();
}

std::string ImpliedNameOf(const Config& config, const std::string& cluster) {
  const DriverTraits* driver = DriverOf(config, cluster);
  return driver == nullptr ? cluster : std::string(driver->name);
}

std::vector<std::string> EngineVariables(const Config& config, const std::string& cluster) {
  const DriverTraits* driver = DriverOf(config, cluster);
  if (driver == nullptr || driver->machine_variable.empty()) return {};
  const Variables own = Variables::OfThisProcess();
  const std::string_view value = own.Get(driver->machine_variable);
  if (value.empty()) return {};
  return {StrCat(driver->machine_variable, "=", value)};
}

Result<FilesRight> RightToFilesOf(const JobRecord& record, bool shared_engine, JobVerb verb) {
  const FilesCaller caller{!IsOthers(record), geteuid() == 0 && IsKnownUser(record.spec.user), shared_engine};
  const FilesRight right = RightToFiles(caller, verb);
  if (right == FilesRight::kRefused) return Fail(Refusal(record, caller, verb));
  return right;
}

Result<void> CheckNotOthers(const JobRecord& record) {
  if (!IsOthers(record)) return {};
  return Fail(Refusal(record, {}, JobVerb::kLogs));
}

}  // namespace overcap
