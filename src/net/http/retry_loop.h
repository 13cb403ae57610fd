// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "net/http/retry_policy.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

// Counts the tries of one request and waits between them.
//   RetryLoop retry(policy, clock, random);
//   while (true) { ...; if (it passes && retry.Again(asked)) continue; return ...; }
class RetryLoop {
 public:
  // `wait` is for tests; without it the thread sleeps.
  RetryLoop(const RetryPolicy& policy, const Clock& clock, Random& random,
            std::function<void(int64_t us)> wait = nullptr);

  // After a failed try: waits and says true, or gives up.
  bool Again(std::optional<int64_t> asked_us);

 private:
  const RetryPolicy policy_;
  const Clock& clock_;
  Random& random_;
  const std::function<void(int64_t us)> wait_;
  const int64_t begin_us_;
  int tries_ = 0;
};

}  // namespace overcap
