// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mounter_words.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(MounterWords, TheLastLineCounts) {
  EXPECT_EQ(MounterLastWords(""), "");
  EXPECT_EQ(MounterLastWords("\n \n"), "");
  EXPECT_EQ(MounterLastWords("starting\nError: no such bucket\n\n"), "Error: no such bucket");
  EXPECT_EQ(MounterLastWords("Error: Failed to create S3 client\n\nCaused by:\n    0: Forbidden\n"),
            "0: Forbidden");
  EXPECT_EQ(MounterLastWords("LoadError: unable to load\ncaused by: no such file\n"),
            "LoadError: unable to load, caused by: no such file");
  EXPECT_EQ(MounterLastWords(std::string(5000, 'x')).size(), 300u);
}

TEST(MounterWords, AnExplanationOfItsUsageDoesNot) {
  EXPECT_EQ(MounterLastWords("error: unexpected argument '--fo' found\n\n"
                             "Usage: mount-s3 [OPTIONS] <BUCKET_NAME> <DIRECTORY>\n\n"
                             "For more information, try '--help'.\n"),
            "error: unexpected argument '--fo' found");
  EXPECT_EQ(MounterLastWords(
                "Incorrect Usage: flag provided but not defined: -fo\n\nNAME:\n"
                "   goofys - Mount an S3 bucket locally\n\nUSAGE:\n   goofys bucket[:prefix] mountpoint\n"),
            "Incorrect Usage: flag provided but not defined: -fo");
  EXPECT_EQ(MounterLastWords("Error: unknown flag: --fo\nUsage:\n  rclone mount remote:path /path [flags]\n\n"
                             "Use \"rclone help backends\" for a list.\n"
                             "2026/01/01 00:00:00 Fatal error: unknown flag: --fo\n"),
            "Error: unknown flag: --fo");
}

}  // namespace
}  // namespace overcap
