// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/venv_paths.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

const std::vector<PathChange> kMoved = {{"/home/a/env", "/local/env"}};

TEST(VenvPaths, APathIsReplacedWhereItStandsAsAWhole) {
  EXPECT_EQ(WithPathsChanged("command = python -m venv /home/a/env\n", kMoved),
            "command = python -m venv /local/env\n");
  EXPECT_EQ(WithPathsChanged("/home/a/env/bin:/home/a/env", kMoved), "/local/env/bin:/local/env");
}

TEST(VenvPaths, PathsThatOnlyBeginOrEndSoStay) {
  for (const char* text : {"/home/a/env2/bin", "/home/a/env-old", "/x/home/a/env", "x/home/a/env"}) {
    EXPECT_EQ(WithPathsChanged(text, kMoved), text);
  }
}

TEST(VenvPaths, TheLongestPathThatFitsCounts) {
  const std::vector<PathChange> changes = {{"/w", "/local/w"}, {"/w/.venv", "/fast/venv"}};
  EXPECT_EQ(WithPathsChanged("/w/.venv/bin /w/src", changes), "/fast/venv/bin /local/w/src");
}

TEST(VenvPaths, AScriptRunsWithTheInterpreterOfItsNewPlaceAndItsTextStays) {
  EXPECT_EQ(WithInterpreterChanged("#!/home/a/env/bin/python3 -s\nprint('/home/a/env')\n", kMoved),
            "#!/local/env/bin/python3 -s\nprint('/home/a/env')\n");
  EXPECT_EQ(WithInterpreterChanged("#!/usr/bin/env python3\n", kMoved), "#!/usr/bin/env python3\n");
  EXPECT_EQ(WithInterpreterChanged("\x7f"
                                   "ELF/home/a/env",
                                   kMoved),
            "\x7f"
            "ELF/home/a/env");
}

TEST(VenvPaths, PipsFormForLongPathsIsUnderstood) {
  EXPECT_EQ(WithInterpreterChanged("#!/bin/sh\n'''exec' \"/home/a/env/bin/python\" \"$0\" \"$@\"\n' '''\nx\n",
                                   kMoved),
            "#!/bin/sh\n'''exec' \"/local/env/bin/python\" \"$0\" \"$@\"\n' '''\nx\n");
  EXPECT_EQ(WithInterpreterChanged("#!/bin/sh\ncd /home/a/env\n", kMoved), "#!/bin/sh\ncd /home/a/env\n");
}

TEST(VenvPaths, ANewPathThatNoFirstLineCanHoldIsStartedByAShell) {
  const std::vector<PathChange> blank = {{"/home/a/env", "/local/my env"}};
  EXPECT_EQ(WithInterpreterChanged("#!/home/a/env/bin/python\nx\n", blank),
            "#!/bin/sh\n'''exec' \"/local/my env/bin/python\" \"$0\" \"$@\"\n' '''\nx\n");
  const std::vector<PathChange> deep = {{"/home/a/env", "/" + std::string(130, 'd')}};
  EXPECT_EQ(WithInterpreterChanged("#!/home/a/env/bin/python\nx\n", deep).substr(0, 10), "#!/bin/sh\n");
}

TEST(VenvPaths, AnEnvironmentSaysWhereItIs) {
  EXPECT_EQ(EnvironmentPathIn("# x\nVIRTUAL_ENV=\"/home/a/env\"\nexport VIRTUAL_ENV\n"), "/home/a/env");
  EXPECT_EQ(EnvironmentPathIn("export VIRTUAL_ENV='/home/a/env/'\n"), "/home/a/env");
  EXPECT_EQ(EnvironmentPathIn("VIRTUAL_ENV=$(cygpath \"/home/a/env\")\n"), "");
  EXPECT_EQ(EnvironmentPathIn(""), "");
}

}  // namespace
}  // namespace overcap
