// SPDX-License-Identifier: Apache-2.0
// What nodes and heads of a fan-out say, and what a node keeps, changed at random.
#include <gtest/gtest.h>

#include "control/fanout/fanout_messages.h"
#include "control/fanout/folder_chunks.h"
#include "control/fanout/venv_paths.h"
#include "mutate.h"

namespace overcap {
namespace {

using namespace fanout;

TEST(FanoutFuzz, MessagesOfAnyBytes) {
  const Digest id = Sha256Of("x");
  Mutator mutator({Encode(ToNode(Object{"config", "bytes"})),
                   Encode(ToNode(Start{1, id.Hex(), id.Hex(), "/local/x", {"/old"}, true, false})),
                   Encode(ToNode(Use{"n", {"10.0.0.1"}, 80})), Encode(ToNode(Data{1, "\1abc"})),
                   Encode(ToHead(Get{1, {{id, 7}, {id, 8}}})), Encode(ToHead(Hello{1, "1", "h", {"::1"}})),
                   Encode(ToHead(Progress{1, 2})), Encode(ToHead(Ready{})), Encode(ToHead(Ask{"why"}))},
                  {std::string(4, '\xff'), "-1", "99999999999999999999", "null"}, 1);
  int64_t read = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = mutator.Next();
    const auto to_node = DecodeToNode(bytes);
    const auto to_head = DecodeToHead(bytes);
    if (to_node) {
      const std::string frame = Encode(*to_node);
      const auto back = DecodeToNode(frame);
      ASSERT_TRUE(back && *back == *to_node);
    }
    if (to_head && std::holds_alternative<Get>(*to_head)) {
      int64_t total = 0;
      for (const WantedChunk& chunk : std::get<Get>(*to_head).chunks) total += chunk.size;
      ASSERT_LE(total, kRequestMost);
    }
    read += to_node || to_head ? 1 : 0;
  }
  EXPECT_GT(read, 500);
}

TEST(FanoutFuzz, TextsOfEnvironments) {
  const std::vector<PathChange> changes = {{"/home/a/env", "/local/with blank"}, {"/home/a", "/b"}};
  Mutator mutator(
      {"#!/home/a/env/bin/python3 -s\nx\n", "#!/bin/sh\n'''exec' \"/home/a/env/bin/python\" \"$0\"\n",
       "VIRTUAL_ENV=\"/home/a/env\"\n", "home = /usr/bin\ncommand = x /home/a/env\n"},
      {"/home/a/env", "#!", "\n", "'"}, 1);
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = mutator.Next();
    const std::string once = WithPathsChanged(text, changes);
    ASSERT_EQ(WithPathsChanged(once, {{"/nowhere/else", "/x"}}), once);
    const std::string script = WithInterpreterChanged(text, changes);
    if (!text.starts_with("#!")) {
      ASSERT_EQ(script, text);
    }
    (void)EnvironmentPathIn(text);
  }
}

}  // namespace
}  // namespace overcap
