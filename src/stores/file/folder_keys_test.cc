// SPDX-License-Identifier: Apache-2.0
#include "stores/file/folder_keys.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>

#include "base/text.h"
#include "stores/file/object_file.h"
#include "stores/testing/quick_folder.h"
#include "sys/fd.h"
#include "sys/fresh_open.h"
#include "sys/random.h"

namespace overcap {
namespace {

// Files in folders with names that differ in the bytes around '/'.
std::vector<std::string> MakeFiles(const QuickFolder& folder, SeededRandom* random) {
  std::vector<std::string> keys;
  const Fd root(open(folder.Path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 60; ++i) {
    std::string key;
    for (uint64_t parts = 1 + random->Below(3); parts > 0; --parts) {
      for (uint64_t bytes = 1 + random->Below(2); bytes > 0; --bytes) key += "ab0-_"[random->Below(5)];
      key += parts > 1 ? "/" : ".";
    }
    std::filesystem::create_directories(folder / key.substr(0, key.rfind('/') + 1));
    const Fd file = OpenRetrying(root.Get(), key, O_WRONLY | O_CREAT, 0600);
    if (file) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::vector<std::string> AllPages(int root, const std::string& prefix, size_t limit) {
  std::vector<std::string> keys;
  std::string next;
  do {
    StorePage page;
    std::string failed;
    EXPECT_EQ(ListFolderKeys(root, prefix, next, limit, KeyRule::kPlain, &page, &failed), 0) << failed;
    EXPECT_LE(page.objects.size(), limit);
    for (const StoredObjectInfo& object : page.objects) keys.push_back(object.key);
    next = page.next;
  } while (!next.empty() && keys.size() < 1000);
  return keys;
}

TEST(FolderKeys, PagesOfAnySizeGiveAllKeysInOrder) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const QuickFolder folder;
    SeededRandom random(seed);
    const std::vector<std::string> keys = MakeFiles(folder, &random);
    const Fd root(open(folder.Path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const size_t limit : {1, 2, 3, 7, 100})
      EXPECT_EQ(AllPages(root.Get(), "", limit), keys) << "seed " << seed;
  }
}

TEST(FolderKeys, AnyPrefixGivesItsKeys) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const QuickFolder folder;
    SeededRandom random(seed);
    const std::vector<std::string> keys = MakeFiles(folder, &random);
    const Fd root(open(folder.Path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = 0; i < keys.size(); i += 3) {
      const std::string prefix = keys[i].substr(0, 1 + random.Below(keys[i].size()));
      std::vector<std::string> wanted;
      std::copy_if(keys.begin(), keys.end(), std::back_inserter(wanted),
                   [&](const std::string& key) { return key.starts_with(prefix); });
      EXPECT_EQ(AllPages(root.Get(), prefix, 2), wanted) << prefix;
    }
  }
}

TEST(FolderKeys, PeoplesOwnFoldersHaveAnyNamesAndLinksToFiles) {
  const QuickFolder folder;
  namespace fs = std::filesystem;
  const Fd root(open(folder.Path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  fs::create_directories(folder / ".git/a b");
  for (const char* key : {".git/a b/\xff\n", ".git/.x", "\xc3\xa4", ".overcap-tmp-1", ".overcap-part-1"})
    ASSERT_TRUE(OpenRetrying(root.Get(), key, O_WRONLY | O_CREAT, 0600)) << key;
  fs::create_symlink("x", folder / ".git/dangling");
  fs::create_symlink(".x", folder / ".git/good");
  fs::create_symlink("..", folder / ".git/circle");
  ASSERT_EQ(mkfifoat(root.Get(), "pipe", 0600), 0);
  for (const size_t limit : {1, 2, 100}) {
    std::vector<std::string> keys;
    int64_t left_out = 0;
    std::string next;
    do {
      StorePage page;
      std::string failed;
      ASSERT_EQ(ListFolderKeys(root.Get(), "", next, limit, KeyRule::kAny, &page, &failed), 0) << failed;
      for (const StoredObjectInfo& object : page.objects) keys.push_back(object.key);
      left_out += page.left_out;
      next = page.next;
    } while (!next.empty());
    EXPECT_EQ(keys, (std::vector<std::string>{".git/.x", ".git/a b/\xff\n", ".git/good", "\xc3\xa4"}));
    EXPECT_EQ(left_out, 3) << limit;
  }
}

}  // namespace
}  // namespace overcap
