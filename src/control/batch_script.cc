// SPDX-License-Identifier: Apache-2.0
#include "control/batch_script.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "control/slurm_options.h"

namespace overcap {
namespace {

constexpr std::string_view kMagic = "#SBATCH";

struct Word {
  std::string text;
  int line = 0;
};

bool IsBlank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

// Calls `use(line, number)` with the directives before the first command; stops when it says false.
void ForEachDirective(std::string_view text, auto use) {
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.starts_with(kMagic)) {
      if (!use(line.substr(kMagic.size()), number)) return;
      continue;
    }
    const auto first = std::ranges::find_if_not(line, IsBlank);
    if (first != line.end() && *first != '#') return;
  }
}

// The next word of a directive; nullopt at its end, at a comment and at an empty word, where sbatch stops
// too. A backslash keeps what follows it, but not a blank outside of quotes.
Result<std::optional<std::string>> NextWord(std::string_view* rest) {
  size_t at = 0;
  while (at < rest->size() && IsBlank((*rest)[at])) ++at;
  std::string word;
  char quote = 0;
  bool escaped = false;
  for (; at < rest->size() && (quote != 0 || !IsBlank((*rest)[at])); ++at) {
    const char c = (*rest)[at];
    if (std::exchange(escaped, false)) {
      word += c;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == 0 && c == '#') {
      at = rest->size();
      break;
    } else {
      word += c;
    }
  }
  if (quote != 0) return Fail(ErrorCode::kUsage, StrCat("a ", std::string(1, quote), " is not closed"));
  rest->remove_prefix(std::min(at, rest->size()));
  return word.empty() ? std::nullopt : std::optional(std::move(word));
}

tl::unexpected<Error> BadLine(std::string_view script, int line, std::string_view message) {
  return Fail(ErrorCode::kUsage, StrCat(ToUtf8(script), ":", line, ": ", message));
}

Result<std::vector<Word>> DirectiveWords(std::string_view text, std::string_view script) {
  std::vector<Word> words;
  Result<void> outcome;
  ForEachDirective(text, [&](std::string_view rest, int line) {
    while (true) {
      auto word = NextWord(&rest);
      if (!word) {
        outcome = BadLine(script, line, word.error().message);
        return false;
      }
      if (!*word) return true;
      words.push_back({std::move(**word), line});
    }
  });
  if (!outcome) return Fail(outcome.error());
  return words;
}

// Takes words apart as getopt does: those of all directives of a script, or those behind `srun`.
class OptionReader {
 public:
  OptionReader(const std::vector<Word>& words, std::string_view script, SlurmProgram program)
      : words_(words), script_(script), program_(program), known_(OptionsOf(program)) {}

  // The options of srun end at the first word that does not begin with a dash, or behind "--".
  size_t end() const { return at_; }

  Result<std::vector<BatchOption>> Read() {
    while (at_ < words_.size()) {
      if (program_ == SlurmProgram::kSrun && !words_[at_].text.starts_with('-')) break;
      if (program_ == SlurmProgram::kSrun && words_[at_].text == "--") {
        ++at_;
        break;
      }
      const std::string& word = words_[at_].text;
      if (word.starts_with("--") && word.size() > 2) {
        OC_TRY_VOID(Long(word));
      } else if (word.starts_with('-') && word.size() > 1 && word != "--") {
        OC_TRY_VOID(Short(word));
      } else {
        const bool several = word == "hetjob" || word == "packjob";
        return several ? Bad("jobs of several parts cannot be submitted by overcap") : NoOption(word);
      }
    }
    return std::move(options_);
  }

 private:
  const SlurmOption* FindLetter(char letter) const {
    const auto found = std::ranges::find(known_, letter, &SlurmOption::letter);
    return letter == 0 || found == known_.end() ? nullptr : *found;
  }

  // By its whole name, or by a beginning that only one option has.
  const SlurmOption* FindLong(std::string_view name) const {
    const SlurmOption* begun = nullptr;
    for (const SlurmOption* known : known_) {
      if (known->name == name) return known;
      if (!known->name.starts_with(name)) continue;
      if (begun != nullptr) return nullptr;
      begun = known;
    }
    return begun;
  }

  tl::unexpected<Error> NoOption(std::string_view word) const {
    return Bad(
        StrCat(Quoted(word), " is no option of ", program_ == SlurmProgram::kSrun ? "srun" : "sbatch"));
  }

  tl::unexpected<Error> Bad(std::string_view message) const {
    if (program_ == SlurmProgram::kSrun) return Fail(ErrorCode::kUsage, StrCat("srun: ", message));
    return BadLine(script_, words_[std::min(at_, words_.size() - 1)].line, message);
  }

  Result<void> Long(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name.empty()) return NoOption(word);
    const SlurmOption* known = FindLong(name);
    const bool plain = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-'; });
    if (known == nullptr && (!plain || program_ == SlurmProgram::kSrun)) return NoOption(word);
    BatchOption option{known != nullptr ? std::string(known->name) : name, "", words_[at_].line};
    if (equals != std::string::npos) {
      if (known != nullptr && known->takes == Takes::kNothing)
        return Bad(StrCat("'--", option.name, "' takes no value"));
      option.value = word.substr(equals + 1);
      return Add(std::move(option));
    }
    const bool next_is_value = at_ + 1 < words_.size() && !words_[at_ + 1].text.starts_with('-');
    if (known != nullptr ? known->takes == Takes::kValue : next_is_value)
      return AddWithNext(std::move(option));
    return Add(std::move(option));
  }

  Result<void> Short(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const SlurmOption* known = FindLetter(word[i]);
      if (known == nullptr) return NoOption(word);
      BatchOption option{std::string(known->name), word.substr(i + 1), words_[at_].line};
      if (known->takes == Takes::kValue)
        return option.value.empty() ? AddWithNext(std::move(option)) : Add(std::move(option));
      if (known->takes == Takes::kPerhaps && !option.value.empty() && std::isdigit(option.value[0]) != 0)
        return Add(std::move(option));
      option.value.clear();
      options_.push_back(std::move(option));
    }
    ++at_;
    return {};
  }

  Result<void> AddWithNext(BatchOption option) {
    if (at_ + 1 >= words_.size()) return Bad(StrCat("'--", option.name, "' has no value"));
    option.value = words_[++at_].text;
    return Add(std::move(option));
  }

  Result<void> Add(BatchOption option) {
    options_.push_back(std::move(option));
    ++at_;
    return {};
  }

  const std::vector<Word>& words_;
  std::string_view script_;
  SlurmProgram program_;
  std::vector<const SlurmOption*> known_;
  size_t at_ = 0;
  std::vector<BatchOption> options_;
};

// "#!/bin/bash -l": as the kernel does, all that follows the program is one word.
Result<std::vector<std::string>> Interpreter(std::string_view text, std::string_view script) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r'))
    return Fail(ErrorCode::kUsage, StrCat("script '", ToUtf8(script), "' has DOS line breaks"),
                StrCat("sed -i 's/\\r$//' ", ShellQuote(script)));
  line.remove_prefix(2);
  line = Trim(line);
  const auto end = static_cast<size_t>(std::ranges::find_if(line, IsBlank) - line.begin());
  const std::string_view program = line.substr(0, end);
  if (!program.starts_with('/'))
    return BadLine(script, 1, "behind '#!' there must be the path of an interpreter, like /bin/bash");
  if (line.find('\0') != std::string_view::npos) return BadLine(script, 1, "there is a NUL byte in it");
  std::vector<std::string> words = {std::string(program)};
  if (const std::string_view rest = Trim(line.substr(end)); !rest.empty()) words.emplace_back(rest);
  return words;
}

}  // namespace

std::string BatchOption::Text() const {
  return value.empty() ? StrCat("--", name) : StrCat("--", name, "=", value);
}

bool IsBatchScript(std::string_view text) {
  if (!text.starts_with("#!")) return false;
  bool found = false;
  ForEachDirective(text, [&](std::string_view, int) {
    found = true;
    return false;
  });
  return found;
}

Result<SrunWords> ParseSrunWords(const std::vector<std::string>& words) {
  std::vector<Word> all;
  for (const std::string& word : words) all.push_back({word, 0});
  OptionReader reader(all, "srun", SlurmProgram::kSrun);
  OC_TRY(options, reader.Read());
  return SrunWords{std::move(options),
                   {words.begin() + static_cast<std::ptrdiff_t>(reader.end()), words.end()}};
}

Result<BatchScript> ParseBatchScript(std::string_view text, std::string_view name) {
  if (!text.starts_with("#!")) return BadLine(name, 1, "a batch script begins with '#!' and its interpreter");
  OC_TRY(interpreter, Interpreter(text, name));
  OC_TRY(words, DirectiveWords(text, name));
  OC_TRY(options, OptionReader(words, name, SlurmProgram::kSbatch).Read());
  return BatchScript{std::move(interpreter), std::move(options)};
}

}  // namespace overcap
