// SPDX-License-Identifier: Apache-2.0
#include "elastic/host/rendezvous_key.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "sys/testing/temp_folder.h"

namespace overcap::elastic {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

class RendezvousKeyTest : public testing::Test {
 protected:
  TempFolder folder_;
  KernelRandom random_;
};

TEST_F(RendezvousKeyTest, AgentsThatShareAFolderShareTheKeyOfAJob) {
  const std::string elastic = folder_ / "root/elastic";
  const auto first = SharedKey(elastic, "job7", &random_), second = SharedKey(elastic, "job7", &random_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(first->size(), 64u);
  EXPECT_EQ(ModeOf(KeyFileOf(elastic, "job7")), 0600u);
  EXPECT_NE(SharedKey(elastic, "job8", &random_).value(), *first);
  EXPECT_NE(SharedKey(folder_ / "other", "job7", &random_).value(), *first);
}

TEST_F(RendezvousKeyTest, AKeyThatOthersCanReadOrPlacedIsRefused) {
  const std::string path = KeyFileOf(folder_.Path(), "job");
  ASSERT_TRUE(SharedKey(folder_.Path(), "job", &random_));
  chmod(path.c_str(), 0640);
  EXPECT_EQ(SharedKey(folder_.Path(), "job", &random_).error().code, ErrorCode::kDenied);
  std::filesystem::rename(path, folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", path);
  EXPECT_FALSE(SharedKey(folder_.Path(), "job", &random_)) << "a link";
  std::filesystem::remove(path);
  std::ofstream(path) << "short\n";
  chmod(path.c_str(), 0600);
  EXPECT_EQ(SharedKey(folder_.Path(), "job", &random_).error().code, ErrorCode::kCorrupt);
}

TEST_F(RendezvousKeyTest, TheLineForOtherHostsHoldsNoKey) {
  EXPECT_EQ(KeyLine("gpu1", "/home/me/.local/state/overcap/elastic/job.key"),
            "export OVERCAP_RDZV_KEY=\"$(ssh gpu1 cat /home/me/.local/state/overcap/elastic/job.key)\"");
}

}  // namespace
}  // namespace overcap::elastic
