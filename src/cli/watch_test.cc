// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.h"

#include <gtest/gtest.h>

namespace overcap::cli {
namespace {

const std::string kBegin = "\033[?2026h\033[H", kEnd = "\033[J\033[?2026l";

TEST(Watch, EachLineClearsWhatStoodBehindItAndTheRestIsCleared) {
  EXPECT_EQ(DrawInPlace("a\nb\n", 24, 80), kBegin + "a\033[K\r\nb\033[K" + kEnd);
  EXPECT_EQ(DrawInPlace("", 24, 80), kBegin + kEnd);
}

TEST(Watch, WhatDoesNotFitIsCountedInTheLastLine) {
  EXPECT_EQ(DrawInPlace("a\nb\nc\nd\n", 3, 80), kBegin + "a\033[K\r\nb\033[K\r\n… 2 more lines\033[K" + kEnd);
  EXPECT_EQ(DrawInPlace("a\nb\n", 2, 80), kBegin + "a\033[K\r\nb\033[K" + kEnd);
}

TEST(Watch, ALongLineIsCutAndLeavesNoColour) {
  EXPECT_EQ(DrawInPlace("abcdef\n", 24, 4), kBegin + "abc…\033[0m\033[K" + kEnd);
}

}  // namespace
}  // namespace overcap::cli
