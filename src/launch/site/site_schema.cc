// SPDX-License-Identifier: Apache-2.0
#include "launch/site/site_schema.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMaxWord = 4096;

#define OC_FACT(member) [](SiteFile& f) -> SiteField { return &f.facts.member; }
#define OC_MATCH(member) [](SiteFile& f) -> SiteField { return &f.matches.back().member; }

// clang-format off
constexpr SiteKey kKeys[] = {
    {"name", SiteType::kName, 0, 0, "what the machine is called; without it the file's own name", OC_FACT(name)},
    {"match.hosts", SiteType::kWords, 0, 0, "patterns of host names, with or without the domain; one must fit", OC_MATCH(hosts)},
    {"match.env", SiteType::kVariables, 0, 0, "patterns by environment variable; every one must be set and fit", OC_MATCH(env)},
    {"gpus", SiteType::kCount, 0, 1024, "GPUs on each host, where neither the scheduler nor a tool tells", OC_FACT(gpus)},
    {"gpu_type", SiteType::kName, 0, 0, "what these GPUs are called: a100", OC_FACT(gpu_type)},
    {"slots", SiteType::kCount, 1, 1'000'000, "ranks that a host takes, whatever its GPUs", OC_FACT(slots)},
    {"launcher", SiteType::kLauncher, 0, 0, "what starts the ranks, in the place of the one that would be chosen", OC_FACT(launcher)},
    {"launcher_program", SiteType::kWord, 0, 0, "its file, when it is not the one on PATH", OC_FACT(launcher_program)},
    {"launcher_args", SiteType::kWords, 0, 0, "words for the launcher, handed on as they are before those of --launcher-args", OC_FACT(launcher_args)},
    {"cpu_bind", SiteType::kWord, 0, 0, "what --cpu-bind is without the flag", OC_FACT(cpu_bind)},
    {"env", SiteType::kVariables, 0, 0, "variables of the ranks, where the user has not set them", OC_FACT(env)},
    {"ssh_options", SiteType::kWords, 0, 0, "words between ssh and the host, in the place of Overcap's own", OC_FACT(ssh_options)},
    {"module_paths", SiteType::kWords, 0, 0, "folders for `module use`, before modules are loaded", OC_FACT(module_paths)},
    {"modules", SiteType::kWords, 0, 0, "modules that overcap_setup_python loads, in this order", OC_FACT(modules)},
    {"python.program", SiteType::kWord, 0, 0, "the Python that virtual environments are made with; python3 without it", OC_FACT(python.program)},
    {"python.conda", SiteType::kConda, 0, 0, "activate an environment of it after the modules", OC_FACT(python.conda)},
    {"python.conda_root", SiteType::kWord, 0, 0, "where it is installed, when neither a module nor PATH leads there", OC_FACT(python.conda_root)},
    {"python.conda_environment", SiteType::kWord, 0, 0, "which environment; base without it", OC_FACT(python.conda_environment)},
    {"python.venv", SiteType::kName, 0, 0, "name of the folder below venvs/; without it after the conda environment", OC_FACT(python.venv)},
};
// clang-format on

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Also a safe name of a file: never "." or "..".
bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text[0] != '.' && text[0] != '-' &&
         std::ranges::all_of(
             text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.'; });
}

// No control characters: words end up in lines and in arguments.
bool IsWord(std::string_view text) {
  return text.size() <= kMaxWord &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; });
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool Fits(SiteType type, std::string_view text) {
  switch (type) {
    case SiteType::kName:
      return IsName(text);
    case SiteType::kLauncher:
      return IsOneOf(text, {"srun", "mpiexec", "mpirun", "ssh", "local"});
    case SiteType::kConda:
      return IsOneOf(text, {"conda", "mamba", "micromamba"});
    case SiteType::kWord:
      return IsWord(text) && !text.empty();
    case SiteType::kWords:
    case SiteType::kVariables:
      return IsWord(text);
    case SiteType::kCount:
      return ParseInt(text).has_value();
  }
  return false;
}

}  // namespace

std::string_view SiteTypeName(SiteType type) {
  constexpr std::array<std::string_view, 7> kNames = {
      "a name of letters, digits, '.', '_' and '-'",
      "one line of text",
      "a whole number",
      "srun, mpiexec, mpirun, ssh or local",
      "conda, mamba or micromamba",
      "a list like [one, two]",
      "lines of NAME: value",
  };
  return kNames[static_cast<size_t>(type)];
}

std::span<const SiteKey> SiteKeys() {
  return kKeys;
}

Result<void> CheckSiteWord(SiteType type, std::string_view text) {
  if (Fits(type, text)) return {};
  const bool list = type == SiteType::kWords || type == SiteType::kVariables;
  const std::string must = StrCat("must be ", SiteTypeName(list ? SiteType::kWord : type));
  return Fail(ErrorCode::kUsage, IsWord(text) ? StrCat(must, ", not '", ToUtf8(text), "'") : must);
}

bool IsVariableName(std::string_view text) {
  return !text.empty() && text.size() <= 256 && !IsDigit(text[0]) &&
         std::ranges::all_of(text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

}  // namespace overcap
