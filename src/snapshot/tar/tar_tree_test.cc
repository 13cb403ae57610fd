// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_tree.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

// "d a/b" folder, "f a/b" file of size 1, "l a b" link, "h a b" hard link to b.
SnapshotEntry EntryOf(std::string_view text) {
  const auto words = Split(text, ' ');
  SnapshotEntry entry;
  entry.type = static_cast<SnapshotEntryType>(words[0][0]);
  entry.path = words[1];
  entry.mode = 0700;
  if (words.size() > 2) entry.target = words[2];
  return entry;
}

// The tree as such lines, or the error. Folders that were made up have a '*'; files the number of their
// content.
std::string TreeOf(const std::vector<std::string>& lines) {
  TarTree tree({1, 2, 3});
  for (const std::string& line : lines) {
    const size_t number = tree.Add(EntryOf(line));
    tree.entry(number).size = static_cast<int64_t>(number);
  }
  const auto resolved = tree.Resolve();
  if (!resolved) return resolved.error().message;
  std::string out;
  const auto visited = tree.Visit([&](const SnapshotEntry& entry) -> Result<void> {
    out += StrCat(static_cast<char>(entry.type), entry.mode == 0755 ? "*" : "", " ", entry.path);
    if (!entry.target.empty()) out += " " + entry.target;
    if (entry.IsFile()) out += StrCat(" =", entry.size);
    out += "\n";
    return {};
  });
  return visited ? out : visited.error().message;
}

TEST(TarTree, AnyOrderGivesTheSame) {
  const std::string wanted = "d \nd a\nf a/x =1\nf a-b =2\n";
  EXPECT_EQ(TreeOf({"d ", "f a/x", "f a-b", "d a"}), wanted);
  EXPECT_EQ(TreeOf({"d a", "f a/x", "f a-b", "d "}), wanted);
}

TEST(TarTree, FoldersThatAreMissingAreMade) {
  EXPECT_EQ(TreeOf({"f a/b/c"}), "d* \nd* a\nd* a/b\nf a/b/c =0\n");
  EXPECT_EQ(TreeOf({"f a/b/c", "f a/d", "d a/b"}), "d* \nd* a\nd a/b\nf a/b/c =0\nf a/d =1\n");
  EXPECT_EQ(TreeOf({}), "d* \n");
}

TEST(TarTree, OfSeveralWithOneNameTheLastCounts) {
  EXPECT_EQ(TreeOf({"f a", "f a"}), "d* \nf a =1\n");
  EXPECT_EQ(TreeOf({"l a b", "d a", "f a/x"}), "d* \nd a\nf a/x =2\n");
}

TEST(TarTree, AFileIsNoFolder) {
  EXPECT_EQ(TreeOf({"f a", "f a/x"}), "'a' is a file, and a folder with 'a/x' in it");
  EXPECT_EQ(TreeOf({"l a /etc", "f a/b/x"}), "'a' is a file, and a folder with 'a/b/x' in it");
  EXPECT_EQ(TreeOf({"f "}), "the folder itself is a file in it");
}

TEST(TarTree, HardLinksLeadToTheFirstOfThemInOrder) {
  EXPECT_EQ(TreeOf({"f m", "h a m", "h z a"}), "d* \nf a =0\nh m a =0\nh z a =0\n");
  EXPECT_EQ(TreeOf({"h a m", "f m"}), "d* \nf a =1\nh m a =1\n") << "before what it leads to";
}

TEST(TarTree, HardLinksMeanWhatStoodThereWhenTheyCame) {
  EXPECT_EQ(TreeOf({"f m", "h a m", "f m"}), "d* \nf a =0\nf m =2\n");
  EXPECT_EQ(TreeOf({"f m", "f m", "h a m"}), "d* \nf a =1\nh m a =1\n");
}

TEST(TarTree, AHardLinkToALinkIsALink) {
  EXPECT_EQ(TreeOf({"l s to", "h a s"}), "d* \nl a to\nl s to\n");
}

TEST(TarTree, HardLinksThatLeadNowhereAreRefused) {
  EXPECT_EQ(TreeOf({"h a m"}), "the hard link 'a' leads to 'm', which is not in it");
  EXPECT_EQ(TreeOf({"d m", "h a m"}), "the hard link 'a' leads to a folder");
  EXPECT_EQ(TreeOf({"h a a"}), "the hard link 'a' leads to 'a', which is not in it");
  EXPECT_EQ(TreeOf({"h a b", "h b a"}), "the hard link 'b' leads to itself");
  EXPECT_EQ(TreeOf({"h a b", "h b c", "h c a"}), "the hard link 'c' leads to itself");
}

std::string Clean(std::string_view name, int strip = 0, bool folder = false) {
  const auto clean = CleanTarPath(name, strip, folder);
  if (!clean) return "! " + clean.error().message;
  return clean->gone ? "gone" : clean->path;
}

TEST(TarPath, NamesAreCleaned) {
  EXPECT_EQ(Clean("./a//b/./c/"), "a/b/c");
  EXPECT_EQ(Clean("./", 0, true), "");
  EXPECT_EQ(Clean("."), "gone");
  EXPECT_EQ(Clean("..a/b.."), "..a/b..");
}

TEST(TarPath, LeadingPartsAreDropped) {
  EXPECT_EQ(Clean("work/a/b", 1), "a/b");
  EXPECT_EQ(Clean("./work/a", 1), "a");
  EXPECT_EQ(Clean("work/", 1, true), "");
  EXPECT_EQ(Clean("work", 1), "gone");
  EXPECT_EQ(Clean("./", 1, true), "gone");
  EXPECT_EQ(Clean("a/b", 3, true), "gone");
}

TEST(TarPath, NamesThatLeadOutAreRefused) {
  EXPECT_EQ(Clean("/etc/passwd"), "! the entry '/etc/passwd' has an absolute name");
  EXPECT_EQ(Clean("a/../b"), "! the entry 'a/../b' has '..' in its name");
  EXPECT_EQ(Clean("..", 1), "! the entry '..' has '..' in its name");
}

}  // namespace
}  // namespace overcap
