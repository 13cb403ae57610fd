// SPDX-License-Identifier: Apache-2.0
#include "sys/user.h"

#include <gtest/gtest.h>
#include <optional>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

namespace overcap {
namespace {

// Sets (or with nullopt unsets) a variable for one test.
class Variable {
 public:
  Variable(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    Set(value);
  }
  ~Variable() { Set(old_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void Set(const std::optional<std::string>& value) {
    if (value) {
      setenv(name_, value->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(UserTest, TheUserHasAName) {
  EXPECT_FALSE(UserName().empty());
  if (geteuid() == 0) {
    EXPECT_EQ(UserName(), "root");
  }
}

TEST(UserTest, TheRootIsOvercapHomeWithoutSlashesAtItsEnd) {
  const Variable home("OVERCAP_HOME", "/data/oc//");
  EXPECT_EQ(OvercapRoot().value(), "/data/oc");
}

TEST(UserTest, ARelativeOvercapHomeIsRefused) {
  const Variable home("OVERCAP_HOME", "state");
  const auto root = OvercapRoot();
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().code, ErrorCode::kUsage);
  EXPECT_EQ(root.error().message, "OVERCAP_HOME is 'state', which is no absolute path");
}

TEST(UserTest, TheStateFolderComesNextUnlessItIsRelative) {
  const Variable none("OVERCAP_HOME", std::nullopt);
  const Variable home("HOME", "/home/u");
  const Variable state("XDG_STATE_HOME", "/state");
  EXPECT_EQ(OvercapRoot().value(), "/state/overcap");
  const Variable relative("XDG_STATE_HOME", "state");
  EXPECT_EQ(OvercapRoot().value(), "/home/u/.local/state/overcap");
}

TEST(UserTest, WithoutHomeTheUserListIsAsked) {
  if (getpwuid(getuid()) == nullptr) GTEST_SKIP() << "NOT TESTED: this user is in no user list";
  const Variable none("OVERCAP_HOME", std::nullopt);
  const Variable state("XDG_STATE_HOME", std::nullopt);
  const Variable home("HOME", std::nullopt);
  const auto root = OvercapRoot();
  ASSERT_TRUE(root);
  EXPECT_TRUE(root->ends_with("/.local/state/overcap"));
}

}  // namespace
}  // namespace overcap
