// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>

#include "base/result.h"
#include "base/text.h"
#include "mutate.h"

namespace overcap {

inline constexpr int kInputs = 20'000;
inline constexpr auto kLongest = std::chrono::seconds(5);  // for one input, on a busy machine
inline constexpr long kMostMemoryKb = 2'000'000;

inline constexpr int kUnderstood = kInputs / 20;
inline constexpr int kFewUnderstood = kInputs / 200;  // for formats in which hardly a byte may change

// Calls `check` with many inputs and holds it to time and memory. It returns whether it understood the input;
// if it hardly ever did, the inputs were too wild to test anything.
inline void ForEachInput(Mutator mutator, const std::function<bool(const std::string&)>& check,
                         int least_understood = kUnderstood) {
  int understood = 0;
  for (int i = 0; i < kInputs; ++i) {
    const std::string input = mutator.Next();
    SCOPED_TRACE(StrCat("input ", i, ": ", ShellQuote(ToUtf8(input))));
    const auto begin = std::chrono::steady_clock::now();
    if (check(input)) {
      ++understood;
      mutator.Keep(input);
    }
    ASSERT_LT(std::chrono::steady_clock::now() - begin, kLongest);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(understood, least_understood);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, kMostMemoryKb);
}

// A refusal as people should see it.
inline bool ExpectOneLine(const Error& error, ErrorCode code) {
  EXPECT_EQ(error.code, code);
  EXPECT_FALSE(error.message.empty());
  EXPECT_LT(error.message.size(), 1000u);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  return false;
}

}  // namespace overcap
