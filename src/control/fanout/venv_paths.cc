// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/venv_paths.h"

#include <cctype>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kInterpreterMost = 127;  // what older kernels take
constexpr std::string_view kShell = "#!/bin/sh\n'''exec' ";

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' || c == '+' ||
         c == '~' || c == '@' || static_cast<unsigned char>(c) >= 0x80;
}

// The longest change whose path stands at `at`; nullptr when none does.
const PathChange* ChangeAt(std::string_view text, size_t at, const std::vector<PathChange>& changes) {
  if (at > 0 && (IsOfName(text[at - 1]) || text[at - 1] == '/')) return nullptr;
  const PathChange* best = nullptr;
  for (const PathChange& change : changes) {
    if (change.from.empty() || !text.substr(at).starts_with(change.from)) continue;
    const size_t end = at + change.from.size();
    if (end < text.size() && IsOfName(text[end])) continue;
    if (best == nullptr || change.from.size() > best->from.size()) best = &change;
  }
  return best;
}

std::string_view LineAt(std::string_view text, size_t begin) {
  const size_t end = text.find('\n', begin);
  return text.substr(begin, end == text.npos ? text.npos : end + 1 - begin);
}

// "#!PATH ARGUMENT" as a line that any kernel takes, or as a shell that starts it, as pip writes it.
std::string InterpreterLine(std::string_view program, std::string_view argument, std::string_view line_end) {
  const std::string direct = StrCat("#!", program, argument.empty() ? "" : " ", argument);
  if (direct.size() <= kInterpreterMost && program.find_first_of(" \t") == program.npos)
    return StrCat(direct, line_end);
  return StrCat(kShell, "\"", program, "\"", argument.empty() ? "" : " ", argument,
                " \"$0\" \"$@\"\n' '''\n");
}

}  // namespace

std::string WithPathsChanged(std::string_view text, const std::vector<PathChange>& changes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const PathChange* change = text[at] == '/' ? ChangeAt(text, at, changes) : nullptr;
    if (change == nullptr) {
      out.push_back(text[at++]);
      continue;
    }
    out.append(change->to);
    at += change->from.size();
  }
  return out;
}

std::string WithInterpreterChanged(std::string_view script, const std::vector<PathChange>& changes) {
  if (!script.starts_with("#!")) return std::string(script);
  const std::string_view first = LineAt(script, 0);
  if (Trim(first) == "#!/bin/sh") {
    const std::string_view second = LineAt(script, first.size());
    if (!second.starts_with("'''exec'")) return std::string(script);
    return StrCat(first, WithPathsChanged(second, changes), script.substr(first.size() + second.size()));
  }
  const std::string_view words = Trim(first.substr(2));
  const std::string changed = WithPathsChanged(words, changes);
  if (changed == words) return std::string(script);
  // The program's new path may hold blanks; its old one cannot.
  const size_t cut = words.find_first_of(" \t");
  const std::string program = WithPathsChanged(words.substr(0, cut), changes);
  const std::string_view argument = cut == words.npos ? "" : Trim(words.substr(cut));
  return StrCat(InterpreterLine(program, argument, first.ends_with('\n') ? "\n" : ""),
                script.substr(first.size()));
}

std::string EnvironmentPathIn(std::string_view activate) {
  for (size_t at = 0; at < activate.size();) {
    const std::string_view line = LineAt(activate, at);
    at += line.size();
    std::string_view rest = Trim(line);
    if (rest.starts_with("export ")) rest = Trim(rest.substr(7));
    constexpr std::string_view kName = "VIRTUAL_ENV=";
    if (!rest.starts_with(kName)) continue;
    rest.remove_prefix(kName.size());
    const char quote = rest.empty() ? '\0' : rest.front();
    if (quote == '"' || quote == '\'') {
      rest.remove_prefix(1);
      rest = rest.substr(0, rest.find(quote));
    }
    if (rest.starts_with('/') && rest.size() > 1 && rest.find_first_of("$`\\") == rest.npos) {
      return std::string(rest.ends_with('/') ? rest.substr(0, rest.size() - 1) : rest);
    }
  }
  return "";
}

}  // namespace overcap
