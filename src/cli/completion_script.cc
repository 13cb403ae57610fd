// SPDX-License-Identifier: Apache-2.0
#include "cli/completion_script.h"

#include <set>

#include "base/text.h"
#include "cli/args.h"

namespace overcap::cli {
namespace {

std::vector<std::string> NamesOf(const Command& command) {
  std::vector<std::string> names = {std::string(command.name)};
  for (const std::string_view alias : command.aliases) names.emplace_back(alias);
  return names;
}

std::string FlagWords(std::span<const Flag> flags) {
  std::string words;
  for (const Flag& flag : flags) {
    for (const std::string_view name : {flag.name, flag.short_name}) {
      if (!name.empty()) words += StrCat(words.empty() ? "" : " ", name);
    }
  }
  return words;
}

// "-n|--gpus|": the flags that take the next word, as a pattern of `case`.
std::string ValueFlagPattern(std::span<const Command* const> commands) {
  std::set<std::string> names;
  const auto add = [&](std::span<const Flag> flags) {
    for (const Flag& flag : flags) {
      if (flag.value.empty()) continue;
      names.emplace(flag.name);
      if (!flag.short_name.empty()) names.emplace(flag.short_name);
    }
  };
  add(GlobalFlags());
  for (const Command* command : commands) add(command->flags);
  return Join({names.begin(), names.end()}, "|");
}

std::string FirstWords(std::span<const Command* const> commands) {
  std::set<std::string> words;
  for (const Command* command : commands) {
    for (const std::string& name : NamesOf(*command)) words.insert(name.substr(0, name.find(' ')));
  }
  return Join({words.begin(), words.end()}, " ");
}

// The second words of each group, as branches of `case`.
std::string GroupCases(std::span<const Command* const> commands) {
  std::set<std::string> groups;
  std::string out;
  for (const Command* command : commands) {
    const size_t space = command->name.find(' ');
    if (space == std::string_view::npos || !groups.emplace(command->name.substr(0, space)).second) continue;
    const std::string prefix(command->name.substr(0, space + 1));
    std::string words;
    for (const Command* other : commands) {
      if (other->name.starts_with(prefix))
        words += StrCat(words.empty() ? "" : " ", other->name.substr(prefix.size()));
    }
    out += StrCat("    '", command->name.substr(0, space), "') choices='", words, "' ;;\n");
  }
  return out;
}

std::string CommandCases(std::span<const Command* const> commands) {
  std::string out;
  for (const Command* command : commands) {
    std::vector<std::string> patterns;
    for (const std::string& name : NamesOf(*command)) patterns.push_back(StrCat("'", name, "'"));
    out += StrCat("    ", Join(patterns, "|"), ") flags='", FlagWords(command->flags), "'");
    if (command->job_words) out += " jobs=1";
    if (command->name == "completion") out += " choices='bash zsh'";
    if (command->takes_command) out += " files=1";
    out += " ;;\n";
  }
  return out;
}

// Looks through the words before the cursor; sets `flags`, `choices`, `jobs` and `files`. Both shells read
// it.
constexpr std::string_view kLookup = R"sh(
_overcap_lookup() {
  local verb='' word skip=0
  flags='' choices='' jobs='' files=''
  for word in "$@"; do
    if [ "$skip" = 1 ]; then skip=0; continue; fi
    case "$word" in
    @VALUE_FLAGS@) skip=1 ;;
    -*) ;;
    *) case "$verb" in
       '') verb="$word" ;;
       *' '*) ;;
       *) verb="$verb $word" ;;
       esac ;;
    esac
  done
  case "$verb" in
    '') choices='@FIRST_WORDS@' ;;
@GROUPS@  esac
  case "$verb" in
@COMMANDS@    *) case "${verb%% *}" in
@COMMANDS@       esac ;;
  esac
  flags="$flags @GLOBAL_FLAGS@"
}
)sh";

constexpr std::string_view kBash = R"sh(
_overcap() {
  local cur="${COMP_WORDS[COMP_CWORD]}" flags choices jobs files
  _overcap_lookup "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")); return ;;
  esac
  if [ -n "$jobs" ]; then choices="$choices last $(overcap ls --quiet 2>/dev/null)"; fi
  COMPREPLY=($(compgen -W "$choices" -- "$cur"))
  if [ -n "$files" ]; then COMPREPLY+=($(compgen -c -- "$cur") $(compgen -f -- "$cur")); fi
}
complete -o default -F _overcap overcap
)sh";

constexpr std::string_view kZsh = R"sh(
_overcap() {
  local flags choices jobs files
  _overcap_lookup "${(@)words[2,CURRENT-1]}"
  if [[ "${words[CURRENT]}" == -* ]]; then
    compadd -- ${=flags}
    return
  fi
  if [ -n "$jobs" ]; then choices="$choices last $(overcap ls --quiet 2>/dev/null)"; fi
  compadd -- ${=choices}
  if [ -n "$files" ]; then _command_names; _files; fi
}
if [ "${funcstack[1]}" = _overcap ]; then _overcap "$@"; else compdef _overcap overcap; fi
)sh";

std::string Replace(std::string text, std::string_view mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

std::string Lookup(std::span<const Command* const> commands) {
  std::string script(kLookup);
  script = Replace(script, "@VALUE_FLAGS@", ValueFlagPattern(commands));
  script = Replace(script, "@FIRST_WORDS@", FirstWords(commands));
  script = Replace(script, "@GROUPS@", GroupCases(commands));
  script = Replace(script, "@COMMANDS@", CommandCases(commands));
  return Replace(script, "@GLOBAL_FLAGS@", FlagWords(GlobalFlags()));
}

}  // namespace

std::string BashCompletion(std::span<const Command* const> commands) {
  return StrCat("# bash completion of overcap\n", Lookup(commands), kBash);
}

std::string ZshCompletion(std::span<const Command* const> commands) {
  return StrCat("#compdef overcap\n", Lookup(commands), kZsh);
}

}  // namespace overcap::cli
