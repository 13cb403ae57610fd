// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launch_contact.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(LaunchContact, IsReadBackAsWritten) {
  const LaunchContact full{"ab12-1", 4711, {"10.0.0.1", "fd00::1"}, "head", "n1", 29500, 3'000'000};
  EXPECT_EQ(full, *ParseContact(EncodeContact(full)));
  const LaunchContact bare{"ab12", 0, {}, "", "", 0, 0};
  EXPECT_EQ(bare, *ParseContact(EncodeContact(bare)));
}

TEST(LaunchContact, OtherTextIsCorrupt) {
  for (const char* text : {"", "1", "2 a 1 - - - 0 0", "1 a/b 1 - - - 0 0", "1 a 65536 - - - 0 0",
                           "1 a 1 - - - x 0", "1 a 1 - - - 0 -1", "1 a 1 - - - 0 0 0"}) {
    const auto contact = ParseContact(text);
    ASSERT_FALSE(contact) << text;
    EXPECT_EQ(ErrorCode::kCorrupt, contact.error().code);
  }
}

}  // namespace
}  // namespace overcap
