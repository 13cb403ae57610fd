// SPDX-License-Identifier: Apache-2.0
#include "control/stored/job_depot.h"

#include <map>

#include "control/stored/stored_job.h"
#include "stores/job_files.h"
#include "sys/clock.h"

namespace overcap {
namespace {

constexpr int64_t kPlainUs = 1'000'000;
constexpr int64_t kArrayUs = 5'000'000;  // each look lists what all its tasks have

class StoreDepot : public JobDepot {
 public:
  Result<void> Refresh(const JobSpec& spec, const std::string& folder) override {
    const int64_t now_us = clock_.MonotonicUs();
    const auto last = looked_us_.find(spec.id);
    if (last != looked_us_.end() && now_us - last->second < (spec.array.empty() ? kPlainUs : kArrayUs))
      return {};
    OC_TRY(store, OpenOnce(spec.store));
    const std::string job = StoredJobKey(spec.id, "");
    if (spec.array.empty()) {
      OC_TRY_VOID(BringAttempts(*store, job, folder));
    } else {
      OC_TRY_VOID(BringReports(*store, job, "attempt-1/agent-", folder));
    }
    looked_us_[spec.id] = clock_.MonotonicUs();
    return {};
  }

  Result<std::string> Create(const JobSpec& spec, const std::string& name, const std::string& text) override {
    OC_TRY(store, OpenOnce(spec.store));
    return CreateOrRead(store.get(), StoredJobKey(spec.id, name), text);
  }

 private:
  const PosixClock clock_{};
  std::map<std::string, int64_t> looked_us_;  // by id, monotonic
};

}  // namespace

std::shared_ptr<JobDepot> MakeJobDepot() {
  return std::make_shared<StoreDepot>();
}

}  // namespace overcap
