// SPDX-License-Identifier: Apache-2.0
#include "control/expand_folder.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace overcap {
namespace {

bool InName(unsigned char c) {
  return std::isalnum(c) != 0 || c == '_';
}

// The name behind a '$', in braces or not, and how many bytes it takes; an empty name when there is none.
struct NamedVariable {
  std::string_view name;
  size_t size = 0;
};
NamedVariable VariableAt(std::string_view text) {
  const bool braces = text.starts_with('{');
  if (braces) text.remove_prefix(1);
  const auto end = static_cast<size_t>(std::ranges::find_if_not(text, InName) - text.begin());
  if (braces && (end == text.size() || text[end] != '}')) return {};
  return {text.substr(0, end), end + (braces ? 2 : 0)};
}

}  // namespace

Result<std::string> ExpandFolder(const std::string& folder, const Variables& variables) {
  const bool at_home = folder == "~" || folder.starts_with("~/");
  const std::string text = at_home ? "$HOME" + folder.substr(1) : folder;
  std::string path;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$') {
      path += text[at];
      continue;
    }
    const NamedVariable named = VariableAt(std::string_view(text).substr(at + 1));
    if (named.name.empty())
      return Fail(ErrorCode::kUsage, StrCat("folder '", folder, "' has a '$' without a name"));
    if (variables.Get(named.name).empty())
      return Fail(ErrorCode::kUsage,
                  StrCat("folder '", folder, "': the variable ", named.name, " is not set"));
    path += variables.Get(named.name);
    at += named.size;
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!path.starts_with('/'))
    return Fail(ErrorCode::kUsage, StrCat("folder '", folder, "' is '", path, "', which is not absolute"));
  return path;
}

}  // namespace overcap
