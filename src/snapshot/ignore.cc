// SPDX-License-Identifier: Apache-2.0
#include "snapshot/ignore.h"

#include <optional>

#include "base/text.h"
#include "snapshot/wildmatch.h"

namespace overcap {
namespace {

// Length of the part before the first character that has a meaning in patterns.
size_t LiteralLength(std::string_view text) {
  const size_t at = text.find_first_of("*?[\\");
  return at == std::string_view::npos ? text.size() : at;
}

// Without blanks at the end, except one that a backslash protects.
std::string_view TrimEnd(std::string_view line) {
  size_t keep = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      if (++i == line.size()) return line;
      keep = i + 1;
    } else if (line[i] != ' ') {
      keep = i + 1;
    }
  }
  return line.substr(0, keep);
}

std::string_view NameOf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

IgnoreRules::IgnoreRules(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('\0'));
    if (line.empty() || line[0] == '#') continue;
    if (line.back() == '\r') line.remove_suffix(1);
    Add(TrimEnd(line));
  }
}

void IgnoreRules::Add(std::string_view line) {
  Pattern pattern;
  if (!line.empty() && line[0] == '!') {
    pattern.negated = true;
    line.remove_prefix(1);
  }
  if (!line.empty() && line.back() == '/') {
    pattern.folder_only = true;
    line.remove_suffix(1);
  }
  pattern.name_only = line.find('/') == std::string_view::npos;
  if (!line.empty() && line[0] == '/') line.remove_prefix(1);
  if (line.empty()) return;  // matches nothing
  pattern.literal = LiteralLength(line);
  pattern.suffix = line[0] == '*' && LiteralLength(line.substr(1)) == line.size() - 1;
  pattern.text = line;
  const uint32_t index = static_cast<uint32_t>(patterns_.size());
  if (pattern.name_only && pattern.literal == line.size()) {
    by_name_[pattern.text].push_back(index);
  } else {
    wild_.push_back(index);
  }
  patterns_.push_back(std::move(pattern));
}

bool IgnoreRules::Pattern::Matches(std::string_view path, std::string_view name) const {
  const std::string_view whole = text;
  if (name_only && suffix) return name.ends_with(whole.substr(1));
  const std::string_view subject = name_only ? name : path;
  if (subject.substr(0, literal) != whole.substr(0, literal)) return false;
  if (literal == whole.size()) return subject.size() == literal;
  // The literal part is cut off first, as git does: "a**/b" then begins with "**/".
  const size_t cut = name_only ? 0 : literal;
  return WildMatch(whole.substr(cut), subject.substr(cut));
}

IgnoreVerdict IgnoreRules::Match(std::string_view path, bool is_folder) const {
  const std::string_view name = NameOf(path);
  int64_t best = -1;
  if (!by_name_.empty()) {
    const auto found = by_name_.find(std::string(name));
    if (found != by_name_.end()) {
      for (const uint32_t index : found->second) {
        if (is_folder || !patterns_[index].folder_only) best = index;
      }
    }
  }
  for (auto at = wild_.rbegin(); at != wild_.rend() && *at > best; ++at) {
    const Pattern& pattern = patterns_[*at];
    if ((is_folder || !pattern.folder_only) && pattern.Matches(path, name)) best = *at;
  }
  if (best < 0) return IgnoreVerdict::kNone;
  return patterns_[best].negated ? IgnoreVerdict::kKept : IgnoreVerdict::kIgnored;
}

void IgnoreStack::EnterAbove(std::string_view folder, std::string_view gitignore,
                             std::string_view overcapignore) {
  levels_.push_back(std::make_shared<const Level>(
      Level{folder.size(), IgnoreRules(gitignore), IgnoreRules(overcapignore)}));
}

void IgnoreStack::Enter(std::string_view folder, std::string_view gitignore, std::string_view overcapignore) {
  EnterAbove(StrCat(prefix_, folder), gitignore, overcapignore);
}

bool IgnoreStack::Ignores(std::string_view path, bool is_folder) const {
  if (levels_.empty() && !last_) return false;
  if (prefix_.empty()) return IgnoresFull(path, is_folder);
  return IgnoresFull(prefix_ + std::string(path), is_folder);
}

bool IgnoreStack::IgnoresFull(std::string_view path, bool is_folder) const {
  for (IgnoreRules Level::*rules : {&Level::overcap, &Level::git}) {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      const IgnoreRules& of = **level.*rules;
      if (of.Empty()) continue;
      const IgnoreVerdict verdict = of.Match(path.substr((*level)->base), is_folder);
      if (verdict != IgnoreVerdict::kNone) return verdict == IgnoreVerdict::kIgnored;
    }
  }
  return last_ && last_->Match(path, is_folder) == IgnoreVerdict::kIgnored;
}

}  // namespace overcap
