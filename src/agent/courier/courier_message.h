// SPDX-License-Identifier: Apache-2.0
// Messages between an agent and its courier (docs/formats/job-store.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

constexpr size_t kMostMessage = 64 << 10;

struct CourierOrder {
  enum class Kind { kBring, kCancel, kCreate, kCode, kBlob, kTrack, kDone, kDrain, kFinish };
  Kind kind = Kind::kBring;
  std::string name;                // create; code: the tree; blob: its id
  std::string to;                  // code, blob
  std::vector<std::string> names;  // track, done
  int64_t seconds = 0;             // drain, finish
};

// kUsage for anything else; names that lead out of the job's folder among it.
Result<CourierOrder> ParseCourierOrder(std::string_view message);

std::string ErrorMessage(const Error& error);
// The error that an answer tells of.
Result<void> ErrorIn(std::string_view answer);

}  // namespace overcap
