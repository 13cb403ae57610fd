// SPDX-License-Identifier: Apache-2.0
#include "snapshot/ignore.h"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>

#include "snapshot/testing/sample_folder.h"
#include "snapshot/walk.h"
#include "sys/fd.h"
#include "sys/random.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* rules;
  const char* path;
  bool is_folder;
  IgnoreVerdict verdict;
};
constexpr IgnoreVerdict kNone = IgnoreVerdict::kNone;
constexpr IgnoreVerdict kIgnored = IgnoreVerdict::kIgnored;
constexpr IgnoreVerdict kKept = IgnoreVerdict::kKept;

class IgnoreTable : public testing::TestWithParam<Case> {};

TEST_P(IgnoreTable, FollowsGitsRules) {
  const Case& c = GetParam();
  EXPECT_EQ(IgnoreRules(c.rules).Match(c.path, c.is_folder), c.verdict) << c.rules << " on " << c.path;
}

constexpr Case kCases[] = {
    {"", "a", false, kNone},
    {"a", "a", false, kIgnored},
    {"a", "x/y/a", false, kIgnored},
    {"/a", "x/a", false, kNone},
    {"/a", "a", false, kIgnored},
    {"x/a", "x/a", false, kIgnored},
    {"x/a", "y/x/a", false, kNone},
    {"a/", "a", false, kNone},
    {"a/", "a", true, kIgnored},
    {"x/a/", "x/a", true, kIgnored},
    {"*.o", "x/y.o", false, kIgnored},
    {"*.o\n!y.o", "x/y.o", false, kKept},
    {"!y.o\n*.o", "x/y.o", false, kIgnored},
    {"a\n!a", "a", false, kKept},
    {"!a\na", "a", false, kIgnored},
    {"# a\na b", "a b", false, kIgnored},
    {"#a", "#a", false, kNone},
    {"\\#a", "#a", false, kIgnored},
    {"\\!a", "!a", false, kIgnored},
    {"a  ", "a", false, kIgnored},
    {"a\\ ", "a ", false, kIgnored},
    {"a\\  ", "a ", false, kIgnored},
    {"a\t", "a", false, kNone},
    {" a", " a", false, kIgnored},
    {"a\r\nb\r\n", "a", false, kIgnored},
    {"\xef\xbb\xbf"
     "a",
     "a", false, kIgnored},
    {"**/a", "x/y/a", false, kIgnored},
    {"x/**", "x/y/z", false, kIgnored},
    {"x/**", "x", true, kNone},
    {"x/**/z", "x/z", false, kIgnored},
    {"/*\n!/keep", "keep", false, kKept},
    {"*.py[cod]", "m/x.pyc", false, kIgnored},
    {"*.py[cod]", "m/x.py", false, kNone},
    {"doc/*.txt", "doc/a.txt", false, kIgnored},
    {"doc/*.txt", "doc/x/a.txt", false, kNone},
    {"/", "a", true, kNone},
    {"!", "a", false, kNone},
    {"a\\", "a\\", false, kNone},
};
INSTANTIATE_TEST_SUITE_P(Table, IgnoreTable, testing::ValuesIn(kCases));

TEST(IgnoreStack, LetsDeeperFilesAndOvercapignoreWin) {
  IgnoreStack stack;
  stack.SetLast(IgnoreRules("excluded"));
  stack.Enter("", "*.log\nbuild/", "!build/\nsecret");
  EXPECT_TRUE(stack.Ignores("a.log", false));
  EXPECT_TRUE(stack.Ignores("secret", false));
  EXPECT_TRUE(stack.Ignores("excluded", false));
  EXPECT_FALSE(stack.Ignores("build", true));
  stack.Enter("sub/", "!a.log\n!secret\n/only", "");
  EXPECT_FALSE(stack.Ignores("sub/a.log", false));
  EXPECT_TRUE(stack.Ignores("sub/secret", false)) << ".overcapignore is stronger than any .gitignore";
  EXPECT_TRUE(stack.Ignores("sub/only", false));
  EXPECT_FALSE(stack.Ignores("sub/x/only", false));
  stack.Leave();
  EXPECT_FALSE(stack.Ignores("only", false));
}

std::set<std::string> WalkPaths(const std::string& folder) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  const Result<WalkResult> walked = Walk(fd.Get(), IgnoreStackFor(folder), "");
  std::set<std::string> paths;
  for (const FoundEntry& entry : walked->entries) paths.insert(entry.path);
  return paths;
}

TEST(IgnoreStackFor, UsesTheRulesOfTheWorkTreeAbove) {
  const TempFolder temp;
  PutFile(temp / ".git/info/exclude", "*.tmp\n");
  PutFile(temp / ".gitignore", "/proj/out\n*.log\n");
  PutFile(temp / "proj/out/x", "");
  PutFile(temp / "proj/a.log", "");
  PutFile(temp / "proj/a.tmp", "");
  PutFile(temp / "proj/main.py", "");
  EXPECT_EQ(WalkPaths(temp / "proj"), std::set<std::string>{"main.py"});
}

TEST(IgnoreStackFor, CapturesAFolderThatIsIgnoredItself) {
  const TempFolder temp;
  PutFile(temp / ".git/HEAD", "");
  PutFile(temp / ".gitignore", "/scratch\n*.log\n");
  PutFile(temp / "scratch/exp/a.log", "");
  EXPECT_EQ(WalkPaths(temp / "scratch/exp"), std::set<std::string>{"a.log"});
}

TEST(IgnoreStackFor, FindsTheExcludesOfALinkedWorkTree) {
  const TempFolder temp;
  PutFile(temp / "main/.git/info/exclude", "secret\n");
  PutFile(temp / "main/.git/worktrees/w/commondir", "../..\n");
  PutFile(temp / "linked/.git", "gitdir: ../main/.git/worktrees/w\n");
  PutFile(temp / "linked/secret", "");
  PutFile(temp / "linked/open", "");
  EXPECT_EQ(WalkPaths(temp / "linked"), std::set<std::string>{"open"});
}

// Patterns and names from few letters, so that they meet often.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string Name() {
    static const char* const kPieces[] = {"a",   "b", "c", "ab",       ".c", "-", "]",
                                          "x y", "A", "1", "\xc3\xa9", "\\", "!", "#"};
    std::string name = Pick(kPieces);
    while (random_.Below(3) == 0) name += Pick(kPieces);
    return name;
  }

  std::string Pattern() {
    static const char* const kPieces[] = {
        "a",    "b",   "c",   "*",     "?",     "**",          "[ab]", "[!a]", "/",
        "/**/", "**/", ".c",  "[a-c]", "[^b-]", "[[:alpha:]]", "\\a",  "\\*",  "ab",
        "/",    "x y", "\\ ", "[]]",   "[\\]]", "[[:digit:]]", "1",    "A",    "#"};
    std::string pattern = random_.Below(4) == 0 ? "!" : "";
    if (random_.Below(4) == 0) pattern += "/";
    pattern += Pick(kPieces);
    while (random_.Below(5) < 3) pattern += Pick(kPieces);
    if (random_.Below(4) == 0) pattern += "/";
    if (random_.Below(8) == 0) pattern += "  ";
    return pattern;
  }

  std::string Rules() {
    std::string rules;
    for (uint64_t i = random_.Below(7); i > 0; --i) rules += Pattern() + "\n";
    return rules;
  }

  void Fill(const std::string& folder, int depth) {
    fs::create_directories(folder);
    if (depth == 0 || random_.Below(3) == 0) PutFile(folder + "/.gitignore", Rules());
    for (uint64_t i = 2 + random_.Below(5); i > 0; --i) {
      const std::string path = folder + "/" + Name();
      if (fs::exists(fs::symlink_status(path))) continue;
      if (depth < 3 && random_.Below(2) == 0) {
        Fill(path, depth + 1);
      } else {
        PutFile(path, "");
      }
    }
  }

 private:
  template <size_t N>
  const char* Pick(const char* const (&pieces)[N]) {
    return pieces[random_.Below(N)];
  }
  SeededRandom random_;
};

std::string NulSeparated(const std::set<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += path + '\0';
  return text;
}

std::set<std::string> FromNulSeparated(const std::string& text) {
  std::set<std::string> paths;
  for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) {
    paths.insert(text.substr(at, text.find('\0', at) - at));
  }
  return paths;
}

TEST(Ignore, AgreesWithGitOnRandomRules) {
  if (!GitIsThere()) GTEST_SKIP() << "git is not on PATH: cannot compare with `git check-ignore`";
  // One folder per seed in one work tree, so that git has to be asked only once.
  const TempFolder temp;
  const std::string top = temp / "repo";
  for (uint64_t seed = 1; seed <= 200; ++seed) Generator(seed).Fill(top + "/seed " + std::to_string(seed), 0);
  RunProgram({"git", "init", "-q", "--template=", "."}, top);
  std::set<std::string> all;
  for (const auto& [path, kind] : Describe(top)) {
    if (path != ".git" && path.rfind(".git/", 0) != 0) all.insert(path);
  }
  const std::set<std::string> by_git = FromNulSeparated(
      RunProgram({"git", "check-ignore", "--no-index", "-z", "--stdin"}, top, NulSeparated(all)));
  const std::set<std::string> walked = WalkPaths(top);
  for (const std::string& path : all) EXPECT_EQ(walked.contains(path), !by_git.contains(path)) << path;
  EXPECT_GT(all.size(), 3000u);
  EXPECT_GT(by_git.size(), 500u) << "the generated rules ignore too little to tell anything";
}

}  // namespace
}  // namespace overcap
