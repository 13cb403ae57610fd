// SPDX-License-Identifier: Apache-2.0
// A fan-out of what is in a store that gives URLs: some nodes read it, and say what it is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "control/fanout/fanout.h"
#include "stores/store.h"

namespace overcap {

struct PullableStore {
  std::shared_ptr<const Store> store;
  std::string ca;                                                  // as fanout::Pull has it
  std::function<Result<std::string>(const std::string& key)> url;  // good for 15 minutes; from any thread
};

constexpr int64_t kPullUrlSeconds = 900;

// One of the three, or an error when the store cannot be listed, or changes all the time.
struct PullOutcome {
  std::optional<FanoutSource> source;
  std::optional<FanoutReport> failed;  // every host has
  std::string why_not;                 // nodes cannot read it: the head is to bring it
};
Result<PullOutcome> PullByNodes(const PullableStore& store, const FanoutRequest& request);

}  // namespace overcap
