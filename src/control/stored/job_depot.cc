// SPDX-License-Identifier: Apache-2.0
#include "control/stored/job_depot.h"

#include <functional>
#include <map>

#include "control/stores/job_stores.h"
#include "stores/job_files.h"
#include "sys/clock.h"

namespace overcap {
namespace {

constexpr int64_t kPlainUs = 1'000'000;
constexpr int64_t kArrayUs = 5'000'000;  // each look lists what all its tasks have
// Who looks at a job or ends it does not wait long for a store that is away, and not again for each job.
constexpr int64_t kPatienceUs = 5'000'000;
constexpr int64_t kAwayUs = 15'000'000;

class StoreDepot : public JobDepot {
 public:
  Result<void> Refresh(const JobSpec& spec, const std::string& folder) override {
    const int64_t now_us = clock_.MonotonicUs();
    const auto last = looked_us_.find(spec.id);
    if (last != looked_us_.end() && now_us - last->second < (spec.array.empty() ? kPlainUs : kArrayUs))
      return {};
    const std::string job = StoredJobKey(spec.id, "");
    const auto bring = [&](Store& store) -> Result<void> {
      if (spec.array.empty()) return BringAttempts(store, job, folder);
      OC_TRY_VOID(BringReports(store, job, "attempt-1/agent-", folder));
      return {};
    };
    OC_TRY_VOID(With(spec.store, bring));
    looked_us_[spec.id] = clock_.MonotonicUs();
    return {};
  }

  Result<std::string> Create(const JobSpec& spec, const std::string& name, const std::string& text) override {
    std::string there;
    const auto create = [&](Store& store) -> Result<void> {
      OC_TRY(read, CreateOrRead(&store, StoredJobKey(spec.id, name), text));
      there = std::move(read);
      return {};
    };
    OC_TRY_VOID(With(spec.store, create));
    return there;
  }

 private:
  struct Known {
    std::shared_ptr<Store> store;
    int64_t away_us = 0;  // when it was seen to be away; 0: it was not
    Error why = {};
  };

  Result<void> With(const JobStore& at, const std::function<Result<void>(Store&)>& act) {
    Known& known = stores_[JobStoreToJson(at)];
    if (known.away_us != 0 && clock_.MonotonicUs() - known.away_us < kAwayUs) return Fail(known.why);
    Result<void> done = Act(at, &known, act);
    const bool away = !done && done.error().code == ErrorCode::kUnavailable;
    known.away_us = away ? clock_.MonotonicUs() : 0;
    if (away) known.why = done.error();
    return done;
  }

  static Result<void> Act(const JobStore& at, Known* known, const std::function<Result<void>(Store&)>& act) {
    if (known->store == nullptr) {
      OC_TRY(opened, OpenJobStore(at, "", Variables::OfThisProcess(), kPatienceUs));
      known->store = std::move(opened);
    }
    return act(*known->store);
  }

  const PosixClock clock_{};
  std::map<std::string, int64_t> looked_us_;  // by id, monotonic
  std::map<std::string, Known> stores_;       // by what they are in a spec
};

}  // namespace

std::shared_ptr<JobDepot> MakeJobDepot() {
  return std::make_shared<StoreDepot>();
}

}  // namespace overcap
