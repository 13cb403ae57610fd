// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr Flag kGlobalFlags[] = {
    {"--json", "", "", "print facts as JSON"},
    {"--help", "-h", "", "show help, beginning with examples"},
    {"--version", "", "", "print the version; with --full also what is inside"},
    {"--cluster", "-c", "NAME", "the cluster to use"},
    {"--config", "", "FILE", "use this file in the place of the nearest overcap.yaml"},
    {"--no-color", "", "", "no colours"},
    {"--quiet", "-q", "", "print only what was asked for"},
};

bool LooksLikeFlag(std::string_view word) {
  return word.size() > 1 && word[0] == '-';
}

enum class FlagPlace { kBeforeVerb, kAfterVerb };

// The flag that `name` ("--gpus", "-n") means for `command` (nullptr: only global ones), or nullptr. A short
// name that a command has taken for itself is its own behind the verb, and everybody's before it:
// `overcap -c sky shell -c 4`.
const Flag* FindFlag(const Command* command, std::string_view name, FlagPlace place) {
  const bool underscores = command != nullptr && command->underscores;
  const auto same = [&](char typed, char own) {
    return typed == own || (underscores && typed == '_' && own == '-');
  };
  const auto named = [&](const Flag& flag) {
    return flag.short_name == name || std::ranges::equal(name, flag.name, same);
  };
  const auto global = std::ranges::find_if(kGlobalFlags, named);
  const bool is_global = global != std::end(kGlobalFlags);
  if (command != nullptr && !(is_global && place == FlagPlace::kBeforeVerb)) {
    const auto own = std::ranges::find_if(command->flags, named);
    if (own != command->flags.end()) return &*own;
  }
  return is_global ? &*global : nullptr;
}

// "--gpus=8" -> {"--gpus", "8"}; "-n8" -> {"-n", "8"}.
struct FlagWord {
  std::string_view name;
  std::optional<std::string_view> rest;
};
FlagWord TakeApart(std::string_view word) {
  if (word[1] != '-') {
    if (word.size() == 2) return {word, std::nullopt};
    return {word.substr(0, 2), word.substr(2)};
  }
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

// What `command` says of a flag that it does not have, or "".
std::string_view MeantFlag(const Command* command, std::string_view word) {
  if (command == nullptr) return {};
  const auto synonym = std::ranges::find(command->synonyms, word, &FlagSynonym::word);
  return synonym != command->synonyms.end() ? synonym->flag : std::string_view();
}

tl::unexpected<Error> UnknownFlag(const Command* command, std::string_view name) {
  std::vector<std::string> candidates;
  for (const Flag& flag : kGlobalFlags) candidates.emplace_back(flag.name);
  if (command != nullptr) {
    for (const Flag& flag : command->flags) candidates.emplace_back(flag.name);
  }
  const std::string_view meant = MeantFlag(command, name);
  const std::string nearest = name.starts_with("--") ? Nearest(name, candidates) : "";
  const std::string verb = command != nullptr ? StrCat("overcap ", command->name) : "overcap";
  std::string hint = meant.find(' ') != std::string_view::npos ? std::string(meant)
                     : !meant.empty()                          ? StrCat("did you mean '", meant, "'?")
                     : !nearest.empty()                        ? StrCat("did you mean '", nearest, "'?")
                                        : StrCat("'", verb, " --help' lists its flags");
  if (meant.empty() && command != nullptr && !command->other_flags.empty())
    hint += StrCat(" (", command->other_flags, ")");
  return Fail(
      ErrorCode::kUsage,
      StrCat("unknown flag '", name, "'", command != nullptr ? StrCat(" of '", command->name, "'") : ""),
      std::move(hint));
}

// Reads one line as `command`; the parser has decided already that it is the one.
class LineReader {
 public:
  LineReader(std::span<const std::string> words, const Command* command) : words_(words), command_(command) {}

  Result<ParsedLine> Read(size_t name_words);
  const GlobalOptions& globals() const { return line_.globals; }

 private:
  Result<void> ReadFlag();
  Result<void> ReadShortSwitches(std::string_view letters);
  Result<void> StoreChecked(const Flag& flag, std::string_view typed, std::string_view value);
  void Store(const Flag& flag, std::string_view typed, std::string_view value);
  Result<void> CheckWords() const;

  std::span<const std::string> words_;
  const Command* command_;
  size_t at_ = 0;
  FlagPlace place_ = FlagPlace::kBeforeVerb;  // of the word at `at_`
  ParsedLine line_;
};

Result<ParsedLine> LineReader::Read(size_t name_words) {
  line_.command = command_;
  std::vector<std::string>& out = line_.args.words_;
  while (at_ < words_.size()) {
    const std::string& word = words_[at_];
    const bool in_name = name_words > 0;
    place_ = in_name ? FlagPlace::kBeforeVerb : FlagPlace::kAfterVerb;
    if (word == "--" && !in_name) {
      out.insert(out.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end());
      break;
    }
    if (LooksLikeFlag(word)) {
      OC_TRY_VOID(ReadFlag());
      continue;
    }
    if (!in_name && command_ != nullptr && command_->takes_command) {
      out.insert(out.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
      break;
    }
    ++at_;
    if (in_name) {
      --name_words;
    } else {
      out.push_back(word);
    }
  }
  OC_TRY_VOID(CheckWords());
  return std::move(line_);
}

Result<void> LineReader::ReadFlag() {
  const std::string_view typed = words_[at_];
  const FlagWord word = TakeApart(typed);
  if (!typed.starts_with("--") && typed.size() > 2 && !MeantFlag(command_, typed).empty())
    return UnknownFlag(command_, typed);  // "-np": no -n with a strange number
  const Flag* flag = FindFlag(command_, word.name, place_);
  if (flag == nullptr) return UnknownFlag(command_, word.name);
  const bool is_long = word.name.size() > 2;
  if (flag->value.empty() && word.rest && !is_long)
    return ReadShortSwitches(std::string_view(words_[at_]).substr(1));
  if (flag->value.empty() && word.rest) {
    return Fail(ErrorCode::kUsage, StrCat("flag '", flag->name, "' takes no value"));
  }
  ++at_;
  if (flag->value.empty()) {
    Store(*flag, word.name, "");
  } else if (word.rest) {
    return StoreChecked(*flag, word.name, *word.rest);
  } else if (at_ < words_.size()) {
    return StoreChecked(*flag, word.name, words_[at_++]);
  } else {
    return Fail(ErrorCode::kUsage, StrCat("flag '", word.name, "' needs a value"),
                StrCat("write '", word.name, " ", flag->value, "'"));
  }
  return {};
}

// "-fq": several switches in one word.
Result<void> LineReader::ReadShortSwitches(std::string_view letters) {
  for (const char letter : letters) {
    const std::string name = {'-', letter};
    const Flag* flag = FindFlag(command_, name, place_);
    if (flag == nullptr) return UnknownFlag(command_, name);
    if (!flag->value.empty()) {
      return Fail(ErrorCode::kUsage,
                  StrCat("flag '", name, "' needs a value and cannot stand in '-", letters, "'"));
    }
    Store(*flag, name, "");
  }
  ++at_;
  return {};
}

// A number that is none is said here, before what follows from it ("no command was given").
Result<void> LineReader::StoreChecked(const Flag& flag, std::string_view typed, std::string_view value) {
  constexpr std::string_view kNumbers[] = {"N", "GPUS", "R", "T", "SECONDS"};
  const bool number = std::ranges::find(kNumbers, flag.value) != std::end(kNumbers);
  if (number && !ParseInt(value))
    return Fail(ErrorCode::kUsage, StrCat(typed, " needs a whole number, not '", value, "'"));
  Store(flag, typed, value);
  return {};
}

void LineReader::Store(const Flag& flag, std::string_view typed, std::string_view value) {
  GlobalOptions& globals = line_.globals;
  if (flag.name == "--json") globals.json = true;
  if (flag.name == "--help") globals.help = true;
  if (flag.name == "--version") globals.version = true;
  if (flag.name == "--no-color") globals.no_color = true;
  if (flag.name == "--quiet") globals.quiet = true;
  if (flag.name == "--cluster") globals.cluster = value;
  if (flag.name == "--config") globals.config_file = value;
  line_.args.flags_.emplace_back(flag.name, value);
  line_.args.typed_.emplace_back(typed);
}

Result<void> LineReader::CheckWords() const {
  if (command_ == nullptr || line_.globals.help) return {};
  const int count = static_cast<int>(line_.args.words_.size());
  const std::string usage =
      StrCat("usage: overcap ", command_->name, command_->usage.empty() ? "" : " ", command_->usage);
  if (count == 0 && command_->takes_command && command_->min_words == 1)
    return Fail(ErrorCode::kUsage, "no command was given", usage);
  if (count < command_->min_words) {
    return Fail(
        ErrorCode::kUsage,
        StrCat("'", command_->name, "' needs ", count == 0 ? "something to work on" : "more than that"),
        usage);
  }
  if (command_->max_words >= 0 && count > command_->max_words) {
    const std::string& extra = line_.args.words_[static_cast<size_t>(command_->max_words)];
    return Fail(ErrorCode::kUsage,
                StrCat("'", command_->name, "' does not know what to do with '", extra, "'"), usage);
  }
  return {};
}

// Where the name of a command stands in the line.
struct NameMatch {
  size_t at = 0;     // of its first word
  size_t words = 0;  // of the name; 0: it is not there
};

// Whether the first words that are no flags, read with the flags of `command`, are its name.
NameMatch MatchName(std::span<const std::string> words, const Command& command, std::string_view name) {
  const std::vector<std::string> parts = Split(name, ' ');
  NameMatch match;
  for (size_t i = 0; i < words.size(); ++i) {
    if (LooksLikeFlag(words[i])) {
      const FlagWord word = TakeApart(words[i]);
      const Flag* flag = FindFlag(&command, word.name, FlagPlace::kBeforeVerb);
      if (flag == nullptr) return {};
      if (!flag->value.empty() && !word.rest) ++i;
      continue;
    }
    if (words[i] != parts[match.words]) return {};
    if (match.words == 0) match.at = i;
    if (++match.words == parts.size()) return match;
  }
  return {};
}

// The words that are no flags when nobody knows yet whose flags they are: a flag takes a value when it does
// so for any command.
std::vector<std::string> PlainWords(std::span<const std::string> words,
                                    std::span<const Command* const> commands) {
  std::vector<std::string> plain;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!LooksLikeFlag(words[i])) {
      plain.push_back(words[i]);
      continue;
    }
    const FlagWord word = TakeApart(words[i]);
    const auto takes_value = [&](const Command* command) {
      const Flag* flag = FindFlag(command, word.name, FlagPlace::kAfterVerb);
      return flag != nullptr && !flag->value.empty();
    };
    if (!word.rest && std::ranges::any_of(commands, takes_value)) ++i;
  }
  return plain;
}

std::vector<std::string> NamesOf(const Command& command) {
  std::vector<std::string> names = {std::string(command.name)};
  for (const std::string_view alias : command.aliases) names.emplace_back(alias);
  return names;
}

struct Choice {
  const Command* command = nullptr;
  NameMatch match;
};

// The command whose name stands first, the longer one ("daemon stop" before "daemon"); nullptr when none fits
// with all flags before it.
Choice ChooseCommand(std::span<const std::string> words, std::span<const Command* const> commands) {
  Choice best;
  for (const Command* command : commands) {
    for (const std::string& name : NamesOf(*command)) {
      const NameMatch match = MatchName(words, *command, name);
      if (match.words == 0) continue;
      const bool earlier = best.command == nullptr || match.at < best.match.at;
      if (earlier || (match.at == best.match.at && match.words > best.match.words)) best = {command, match};
    }
  }
  return best;
}

// What other programs call it.
struct Synonym {
  std::string_view word;
  std::string_view command;
};
constexpr Synonym kSynonyms[] = {
    {"cancel", "abort"}, {"kill", "abort"},      {"stop", "abort"},    {"status", "query"},
    {"show", "query"},   {"run", "submit"},      {"tail", "logs"},     {"log", "logs"},
    {"list", "ls"},      {"jobs", "ls"},         {"ps", "ls"},         {"delete", "rm"},
    {"remove", "rm"},    {"rerun", "resubmit"},  {"mpirun", "launch"}, {"mpiexec", "launch"},
    {"srun", "launch"},  {"torchrun", "launch"},
};

// Commands that are gone, with what does their work.
struct RemovedCommand {
  std::string_view name, instead;
};
constexpr RemovedCommand kRemoved[] = {
    {"store lock", "it was removed; on a file system that the nodes share flock(1) does the same"},
};

// The command that `word` was probably meant to be, or "".
std::string MeantCommand(const std::string& word, const std::vector<std::string>& known) {
  const auto synonym = std::ranges::find(kSynonyms, word, &Synonym::word);
  if (synonym != std::end(kSynonyms) && std::ranges::find(known, synonym->command) != known.end())
    return std::string(synonym->command);
  std::set<std::string> begun;
  for (const std::string& name : known) {
    if (word.size() > 1 && name.starts_with(word)) begun.insert(name);
  }
  return begun.size() == 1 ? *begun.begin() : Nearest(word, known);
}

// Why no command fits.
Result<ParsedLine> Unmatched(std::span<const std::string> words, std::span<const Command* const> commands,
                             GlobalOptions* globals) {
  const std::vector<std::string> plain = PlainWords(words, commands);
  std::vector<std::string> known;  // first words, or second words once the first is that of a group
  std::vector<std::string> group;
  for (const Command* command : commands) {
    for (const std::string& name : NamesOf(*command)) {
      const std::vector<std::string> parts = Split(name, ' ');
      known.push_back(parts[0]);
      if (plain.empty() || parts[0] != plain[0]) continue;
      if (parts.size() == 2) group.push_back(parts[1]);
      if (parts.size() == 2 && (plain.size() < 2 || parts[1] != plain[1])) continue;
      LineReader reader(words, command);  // the verb is right, so a flag before it is wrong
      auto line = reader.Read(parts.size());
      *globals = reader.globals();
      return line;
    }
  }
  LineReader reader(words, nullptr);
  auto line = reader.Read(group.empty() ? 0 : 1);
  *globals = reader.globals();
  if (plain.empty() || (!group.empty() && line && line->globals.help)) {
    if (line && !plain.empty()) line->group = plain[0];
    return line;
  }
  const std::string both = plain.size() < 2 ? plain[0] : StrCat(plain[0], " ", plain[1]);
  const auto removed = std::ranges::find(kRemoved, both, &RemovedCommand::name);
  if (removed != std::end(kRemoved))
    return Fail(ErrorCode::kUsage, StrCat("unknown command '", both, "'"), std::string(removed->instead));
  if (group.empty()) {
    const std::string nearest = MeantCommand(plain[0], known);
    return Fail(ErrorCode::kUsage, StrCat("unknown command '", plain[0], "'"),
                nearest.empty() ? "'overcap --help' lists the commands"
                                : StrCat("did you mean 'overcap ", nearest, "'?"));
  }
  const std::string choices = Join(group, ", ");
  if (plain.size() < 2)
    return Fail(ErrorCode::kUsage, StrCat("'", plain[0], "' needs one more word"),
                StrCat("one of: ", choices));
  const std::string nearest = Nearest(plain[1], group);
  return Fail(ErrorCode::kUsage, StrCat("unknown command '", both, "'"),
              nearest.empty() ? StrCat("one of: ", choices)
                              : StrCat("did you mean 'overcap ", plain[0], " ", nearest, "'?"));
}

}  // namespace

std::span<const Flag> GlobalFlags() {
  return kGlobalFlags;
}

Result<ParsedLine> ParseLine(std::span<const std::string> words, std::span<const Command* const> commands,
                             GlobalOptions* globals) {
  GlobalOptions unused;
  if (globals == nullptr) globals = &unused;
  if (!words.empty() && words[0] == "help") {  // "overcap help submit"
    std::vector<std::string> asked(words.begin() + 1, words.end());
    asked.emplace_back("--help");
    return ParseLine(asked, commands, globals);
  }
  const Choice choice = ChooseCommand(words, commands);
  if (choice.command == nullptr) return Unmatched(words, commands, globals);
  LineReader reader(words, choice.command);
  auto line = reader.Read(choice.match.words);
  *globals = line ? line->globals : reader.globals();
  return line;
}

bool Args::Has(std::string_view flag) const {
  return std::ranges::any_of(flags_, [&](const auto& given) { return given.first == flag; });
}

std::string_view Args::Get(std::string_view flag) const {
  for (auto given = flags_.rbegin(); given != flags_.rend(); ++given) {
    if (given->first == flag) return given->second;
  }
  return {};
}

std::string_view Args::Typed(std::string_view flag) const {
  for (size_t i = typed_.size(); i-- > 0;) {
    if (flags_[i].first == flag) return typed_[i];
  }
  return flag;
}

std::vector<std::string> Args::All(std::string_view flag) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : flags_) {
    if (name == flag) values.push_back(value);
  }
  return values;
}

std::string_view Args::LastOf(std::initializer_list<std::string_view> names) const {
  for (auto given = flags_.rbegin(); given != flags_.rend(); ++given) {
    if (const auto* name = std::ranges::find(names, given->first); name != names.end()) return *name;
  }
  return {};
}

Result<long long> Args::GetInt(std::string_view flag, long long absent, long long min, long long max) const {
  if (!Has(flag)) return absent;
  const std::string_view text = Get(flag);
  const auto value = ParseInt(text);
  if (!value) return Fail(ErrorCode::kUsage, StrCat(Typed(flag), " needs a whole number, not '", text, "'"));
  if (*value < min)
    return Fail(ErrorCode::kUsage, StrCat(Typed(flag), " must be at least ", min, ", not ", *value));
  if (*value > max)
    return Fail(ErrorCode::kUsage, StrCat(Typed(flag), " must be at most ", max, ", not ", *value));
  return *value;
}

}  // namespace overcap::cli
