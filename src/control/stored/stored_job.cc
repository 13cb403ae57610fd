// SPDX-License-Identifier: Apache-2.0
#include "control/stored/stored_job.h"

#include <map>

#include "base/text.h"
#include "control/stores/job_stores.h"
#include "stores/job_files.h"
#include "sys/posix_files.h"

namespace overcap {

Result<std::shared_ptr<Store>> OpenOnce(const JobStore& store) {
  static std::map<std::string, std::shared_ptr<Store>>* const known =
      new std::map<std::string, std::shared_ptr<Store>>();
  std::shared_ptr<Store>& found = (*known)[JobStoreToJson(store)];
  if (found == nullptr) {
    OC_TRY(opened, OpenJobStore(store, "", Variables::OfThisProcess()));
    found = std::move(opened);
  }
  return found;
}

Result<void> PutStoredSpec(const JobSpec& spec) {
  if (spec.store.empty()) return {};
  OC_TRY(store, OpenOnce(spec.store));
  return store->Put(StoredJobKey(spec.id, "spec.json"), SpecToJson(spec) + "\n");
}

void DropStoredSpec(const JobSpec& spec, const Error& refusal) {
  // Nobody knows: the same may be sent again.
  if (refusal.code != ErrorCode::kUnavailable && !spec.store.empty())
    (void)RemoveStoredJob(spec.store, spec.id);
}

Result<void> RemoveStoredJob(const JobStore& store, const std::string& id) {
  OC_TRY(opened, OpenOnce(store));
  OC_TRY(objects, opened->ListAll(StoredJobKey(id, "")));
  // The spec last: what names the code goes when nothing else is left.
  const std::string spec = StoredJobKey(id, "spec.json");
  for (const StoredObjectInfo& object : objects) {
    if (object.key != spec) OC_TRY_VOID(opened->Remove(object.key));
  }
  return opened->Remove(spec);
}

Result<std::shared_ptr<Store>> LogStoreOf(const JobRecord& record) {
  // Without a folder it is a job of another user, whose store is not opened with this user's keys.
  if (record.spec.store.empty() || record.dir.empty()) return std::shared_ptr<Store>();
  return OpenOnce(record.spec.store);
}

std::string StoredKeyOf(const JobRecord& record, const std::string& path) {
  const bool inside = path.starts_with(record.dir + "/");
  return StoredJobKey(record.spec.id, inside ? path.substr(record.dir.size() + 1) : path);
}

void BringTries(const JobRecord& record, int task) {
  const auto store = LogStoreOf(record);
  if (!store || *store == nullptr) return;
  (void)BringReports(**store, StoredJobKey(record.spec.id, ""), StrCat("attempt-1/task-", task, "."),
                     record.dir);
}

}  // namespace overcap
