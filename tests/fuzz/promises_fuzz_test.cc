// SPDX-License-Identifier: Apache-2.0
// The record of promises: whatever its lines hold, they are read or skipped, and what is read is written the
// same.
#include "control/promise_record.h"
#include "inputs.h"

namespace overcap {
namespace {

TEST(PromisesFuzz, LinesAreReadOrSkipped) {
  const StartPromise promise{
      "sky", "job-1", "short", 1'800'000'000'000'000, 1'800'000'060'000'000, 1'800'000'600'000'000, 200, 7};
  const std::string good =
      PromiseLine(promise) + OutcomeLine({"sky", "job-1", 1'800'000'100'000'000, 0, 1'800'000'200'000'000});
  ForEachInput(Mutator({good},
                       {"null", "-1", "1e999", "18446744073709551616", "9223372036854775807", "[", "{",
                        "\"\"", "\n", "\"promise\":1", "\"outcome\":1", "\\u0000", "\xff"},
                       1)
                   .Gently(),
               [](const std::string& text) {
                 const auto kept = ReadPromises(text);
                 (void)PromisesToJson(CountPromises(kept, 1'800'000'300'000'000));
                 for (const KeptPromise& one : kept) {
                   const auto again = ReadPromises(PromiseLine(one.promise));
                   EXPECT_EQ(again.size(), 1U);
                   if (!again.empty()) {
                     EXPECT_EQ(again[0].promise, one.promise);
                   }
                 }
                 return !kept.empty();
               });
}

}  // namespace
}  // namespace overcap
