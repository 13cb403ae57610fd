// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace overcap {

// The largest object that any store keeps: a block blob of 50,000 blocks of 4000 MiB.
constexpr int64_t kMostObjectBytes = int64_t{50'000} * 4000 * 1024 * 1024;

// Whether an object can have a size that somebody announces: what is allocated for its parts rests on it.
Result<void> CheckObjectSize(std::string_view key, int64_t size, int64_t most = kMostObjectBytes);

}  // namespace overcap
