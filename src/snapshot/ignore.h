// SPDX-License-Identifier: Apache-2.0
// What a capture leaves out: .gitignore with git's own rules, and .overcapignore, same syntax, asked first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace overcap {

inline constexpr std::string_view kGitIgnoreName = ".gitignore";
inline constexpr std::string_view kOvercapIgnoreName = ".overcapignore";

enum class IgnoreVerdict { kNone, kIgnored, kKept };

// The patterns of one ignore file.
class IgnoreRules {
 public:
  explicit IgnoreRules(std::string_view text);

  // What the last pattern that matches says. `path` is relative to the folder of the ignore file.
  IgnoreVerdict Match(std::string_view path, bool is_folder) const;
  bool Empty() const { return patterns_.empty(); }

 private:
  struct Pattern {
    std::string text;          // without '!', leading and trailing '/'
    size_t literal = 0;        // so many characters at its begin have no special meaning
    bool negated = false;      // "!text"
    bool folder_only = false;  // "text/"
    bool name_only = false;    // no '/' in it: matches in any depth
    bool suffix = false;       // "*literal"

    bool Matches(std::string_view path, std::string_view name) const;
  };

  void Add(std::string_view line);

  std::vector<Pattern> patterns_;
  std::vector<uint32_t> wild_;  // patterns that are no plain names
  std::unordered_map<std::string, std::vector<uint32_t>>
      by_name_;  // the plain names; most files have only these
};

// The rules that hold at one point of a walk. Folders are entered and left like a stack; folders without
// ignore files need not be entered.
class IgnoreStack {
 public:
  // Rules of files outside the walked folder. `prefix` is the walked folder's path below the work tree's top
  // ("a/b/"), or "".
  explicit IgnoreStack(std::string prefix = {}) : prefix_(std::move(prefix)) {}

  // Rules below all others (.git/info/exclude).
  void SetLast(IgnoreRules rules) { last_ = std::make_shared<const IgnoreRules>(std::move(rules)); }

  // The ignore files' texts of a folder, its path with '/' at the end; "" is the walked folder.
  void Enter(std::string_view folder, std::string_view gitignore, std::string_view overcapignore);
  // The same for a folder above; `folder` is a prefix of `prefix`.
  void EnterAbove(std::string_view folder, std::string_view gitignore, std::string_view overcapignore);
  void Leave() { levels_.pop_back(); }

  // Whether this entry is left out, its parent not being so.
  bool Ignores(std::string_view path, bool is_folder) const;

 private:
  struct Level {
    size_t base;  // length of the folder's path
    IgnoreRules git;
    IgnoreRules overcap;
  };

  bool IgnoresFull(std::string_view path, bool is_folder) const;

  std::string prefix_;
  // Never changed once they are made: copies of the stack share them, also between threads.
  std::vector<std::shared_ptr<const Level>> levels_;
  std::shared_ptr<const IgnoreRules> last_;
};

// The stack for a walk of `folder` (a real path): with the rules of the git work tree that it is part of.
// Rules that would ignore `folder` itself are not used.
IgnoreStack IgnoreStackFor(const std::string& folder);

}  // namespace overcap
