// SPDX-License-Identifier: Apache-2.0
// Which of the jobs that may be stopped are. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace overcap::pooled {

// What is missing, or what somebody would give back: GPUs, CPUs, and megabytes (or jobs).
using Amounts = std::array<int64_t, 3>;

struct Candidate {
  uint32_t job = 0;
  Amounts gives = {};
  int64_t loss = 0;  // GPU-seconds of work since its last checkpoint
};

struct Choice {
  std::vector<uint32_t> jobs;  // in the order of the candidates
  int64_t loss = 0;
};

// The fewest candidates that together give what is missing and, of equally few, those that lose the least;
// none of them is there in vain. Of equal ones the first. Nothing: all of them together are not enough. Exact
// as long as GPUs alone decide; where CPUs or memory are short too, few and not always fewest. Also nothing
// when it can be seen quickly that more than `most` are needed.
std::optional<Choice> ChooseVictims(const Amounts& missing, const std::vector<Candidate>& candidates,
                                    size_t most = ~size_t{0});

}  // namespace overcap::pooled
