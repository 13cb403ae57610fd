// SPDX-License-Identifier: Apache-2.0
#include "control/precious_folder.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

TEST(PreciousFolder, EverythingAndWhatHasTheHomeFolderInItIsRefused) {
  const QuickFolder folder;
  std::filesystem::create_directories(folder / "home/me/data");
  std::filesystem::create_directory(folder / "home/me2");
  std::filesystem::create_symlink(folder / "home/me", folder / "link");
  const Variables variables({"HOME=" + (folder / "home/me")});
  for (const std::string& path : {std::string("/"), std::string("/proc/.."), folder / "home/me",
                                  folder / "home", folder / "home/me2/../me/", folder / "link"}) {
    const auto refused = RefusePreciousFolder(path, variables);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_NE(refused.error().message.find("'" + path + "'"), std::string::npos) << refused.error().message;
  }
  for (const std::string& path : {folder / "home/me/data", folder / "home/me2", folder / "none"})
    EXPECT_TRUE(RefusePreciousFolder(path, variables)) << path;
  EXPECT_TRUE(RefusePreciousFolder(folder / "home", Variables(std::vector<std::string>())));
  EXPECT_FALSE(RefusePreciousFolder("/", Variables(std::vector<std::string>())));
}

}  // namespace
}  // namespace overcap
