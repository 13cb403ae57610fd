// SPDX-License-Identifier: Apache-2.0
#include "cli/completion_script.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "cli/args.h"
#include "model/job_state.h"

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

// "-n|--gpus": the flags that take the next word, as a pattern of `case`; only those whose value is called
// one of `values`, unless that is empty. "''" when there is none.
std::string ValueFlagPattern(std::span<const Command* const> commands,
                             std::initializer_list<std::string_view> values) {
  std::set<std::string> names;
  const auto add = [&](std::span<const Flag> flags) {
    for (const Flag& flag : flags) {
      const bool meant = values.size() == 0 || std::ranges::find(values, flag.value) != values.end();
      if (flag.value.empty() || !meant) continue;
      names.emplace(flag.name);
      if (!flag.short_name.empty()) names.emplace(flag.short_name);
    }
  };
  add(GlobalFlags());
  for (const Command* command : commands) add(command->flags);
  return names.empty() ? "''" : Join({names.begin(), names.end()}, "|");
}

// The first words of commands with two, as a pattern of `case`.
std::string GroupPattern(std::span<const Command* const> commands) {
  std::set<std::string> names;
  for (const Command* command : commands) {
    const size_t space = command->name.find(' ');
    if (space != std::string_view::npos) names.emplace(command->name.substr(0, space));
  }
  return names.empty() ? "''" : Join({names.begin(), names.end()}, "|");
}

// The commands whose words are a command line of their own.
std::string RunnerPattern(std::span<const Command* const> commands) {
  std::vector<std::string> names;
  for (const Command* command : commands) {
    if (!command->takes_command) continue;
    for (const std::string& name : NamesOf(*command)) names.push_back(name);
  }
  return names.empty() ? "''" : Join(names, "|");
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
    if (command->name == "completion" || command->name == "shell-init") out += " choices='bash zsh'";
    out += " ;;\n";
  }
  return out;
}

// Looks through the words before the cursor and sets what may stand there: `flags` and `choices` are words;
// `states`, `jobs`, `programs` and `files` are 1 when such may. Both shells read it.
constexpr std::string_view kLookup = R"sh(
_overcap_lookup() {
  local verb='' word flag='' inside='' count=0 first=0
  flags='' choices='' states='' jobs='' programs='' files=''
  for word in "$@"; do
    if [ -n "$flag" ]; then flag=''; continue; fi
    if [ -n "$inside" ]; then
      if [ "$word" != -- ]; then count=$((count + 1)); fi
      continue
    fi
    case "$word" in
    --) inside=1 ;;
    @VALUE_FLAGS@) flag="$word" ;;
    -*) ;;
    *) case "$verb" in
       '') verb="$word" ;;
       @GROUP_NAMES@) verb="$verb $word" ;;
       @RUNNERS@) inside=1 count=1 ;;
       *) count=$((count + 1)) ;;
       esac ;;
    esac
  done
  case "$flag" in
    '') ;;
    @STATE_FLAGS@) states=1; return ;;
    @JOB_FLAGS@) jobs=1; return ;;
    @FILE_FLAGS@) files=1; return ;;
    *) return ;;
  esac
  case "$verb" in
    '') choices='@FIRST_WORDS@' ;;
@GROUPS@  esac
  case "$verb" in
@COMMANDS@  esac
  flags="$flags @GLOBAL_FLAGS@"
  case "$verb" in
    @RUNNERS@)
      if [ -n "$jobs" ]; then first=1; fi
      if [ "$count" -ge "$first" ]; then jobs=''; files=1; fi
      if [ "$count" -eq "$first" ]; then programs=1; fi ;;
  esac
  if [ -n "$inside" ]; then flags=''; fi
}
)sh";

constexpr std::string_view kBash = R"sh(
_overcap() {
  local cur="${COMP_WORDS[COMP_CWORD]}" before='' flags choices states jobs programs files
  _overcap_lookup "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  COMPREPLY=()
  if [ -z "$files" ]; then compopt +o default 2>/dev/null; fi
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")); return ;;
  esac
  if [ -n "$states" ]; then
    case "$cur" in *,*) before="${cur%,*}," ;; esac
    choices='@STATES@'
  fi
  if [ -n "$jobs" ]; then choices="$choices last $(OVERCAP_RETRY=0 overcap ls --quiet 2>/dev/null)"; fi
  COMPREPLY=($(compgen -P "$before" -W "$choices" -- "${cur#"$before"}"))
  if [ -n "$programs" ]; then
    case "$cur" in */*) ;; *) COMPREPLY+=($(compgen -c -- "$cur")) ;; esac
  fi
}
complete -o default -F _overcap overcap
)sh";

constexpr std::string_view kZsh = R"sh(
_overcap() {
  local flags choices states jobs programs files
  _overcap_lookup "${(@)words[2,CURRENT-1]}"
  if [[ "${words[CURRENT]}" == -* && -n "$flags" ]]; then
    compadd -- ${=flags}
    return
  fi
  if [ -n "$states" ]; then
    compset -P '*,'
    choices='@STATES@'
  fi
  if [ -n "$jobs" ]; then choices="$choices last $(OVERCAP_RETRY=0 overcap ls --quiet 2>/dev/null)"; fi
  if [ -n "$choices" ]; then compadd -- ${=choices}; fi
  if [ -n "$programs" ]; then _command_names -e; fi
  if [ -n "$files" ]; then _files; fi
}
if [ "${funcstack[1]}" = _overcap ]; then _overcap "$@"; else compdef _overcap overcap; fi
)sh";

std::string Replace(std::string text, std::string_view mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

std::string States() {
  std::string words;
  for (int state = 0; state < static_cast<int>(JobState::kUnknown); ++state) {
    words += StrCat(state == 0 ? "" : " ", JobStateName(static_cast<JobState>(state)));
  }
  return words;
}

std::string Lookup(std::span<const Command* const> commands) {
  std::string script(kLookup);
  script = Replace(script, "@VALUE_FLAGS@", ValueFlagPattern(commands, {}));
  script = Replace(script, "@STATE_FLAGS@", ValueFlagPattern(commands, {"STATES"}));
  script = Replace(script, "@JOB_FLAGS@", ValueFlagPattern(commands, {"JOB"}));
  script = Replace(script, "@FILE_FLAGS@", ValueFlagPattern(commands, {"FILE", "FOLDER"}));
  script = Replace(script, "@GROUP_NAMES@", GroupPattern(commands));
  script = Replace(script, "@RUNNERS@", RunnerPattern(commands));
  script = Replace(script, "@FIRST_WORDS@", FirstWords(commands));
  script = Replace(script, "@GROUPS@", GroupCases(commands));
  script = Replace(script, "@COMMANDS@", CommandCases(commands));
  return Replace(script, "@GLOBAL_FLAGS@", FlagWords(GlobalFlags()));
}

}  // namespace

std::string BashCompletion(std::span<const Command* const> commands) {
  return StrCat("# bash completion of overcap\n", Lookup(commands),
                Replace(std::string(kBash), "@STATES@", States()));
}

std::string ZshCompletion(std::span<const Command* const> commands) {
  return StrCat("#compdef overcap\n", Lookup(commands), Replace(std::string(kZsh), "@STATES@", States()));
}

}  // namespace overcap::cli
