// SPDX-License-Identifier: Apache-2.0
#include "stores/key_variables.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(KeyVariables, AreTakenFromTheMachineWhereAnEnvironmentHasNone) {
  const Variables own(
      {"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AZURE_STORAGE_KEY=c", "HOME=/root"});
  EXPECT_EQ(WithStoreKeysOf(own, {"X=1"}),
            (std::vector<std::string>{"X=1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
                                      "AZURE_STORAGE_KEY=c"}));
}

TEST(KeyVariables, KeysOfOneServiceAreNeverMixed) {
  const Variables own({"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_SESSION_TOKEN=t"});
  const std::vector<std::string> env = {"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=y"};
  EXPECT_EQ(WithStoreKeysOf(own, env), env);
}

TEST(KeyVariables, AreKnownByName) {
  EXPECT_TRUE(IsStoreKeyVariable("AZURE_STORAGE_CONNECTION_STRING"));
  EXPECT_FALSE(IsStoreKeyVariable("AWS_REGION"));
}

}  // namespace
}  // namespace overcap
