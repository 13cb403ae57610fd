// SPDX-License-Identifier: Apache-2.0
// The one list of keys of a site file: it drives reading, the texts of errors and the check of the manual.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "launch/site/site.h"

namespace overcap {

// A machine fits when its name fits one of `hosts` (if there are any) and every variable of `env` is set and
// fits. All are patterns of '*', '?' and '[...]'.
struct SiteMatch {
  std::vector<std::string> hosts;
  std::map<std::string, std::string> env;
};

// One file as it was read.
struct SiteFile {
  std::vector<SiteMatch> matches;  // any of them will do
  SiteFacts facts;
};

enum class SiteType { kName, kWord, kCount, kLauncher, kConda, kWords, kVariables };
std::string_view SiteTypeName(SiteType type);  // "a whole number", for messages and the manual

// The place that a key sets; which one is in it follows from the type.
using SiteField = std::variant<std::string*, int*, std::vector<std::string>*,
                               std::optional<std::vector<std::string>>*, std::map<std::string, std::string>*>;

struct SiteKey {
  std::string_view path;  // "gpus", "python.conda"
  SiteType type;
  int min, max;                  // of a number
  std::string_view description;  // one line
  SiteField (*field)(SiteFile& file);
};

std::span<const SiteKey> SiteKeys();

// Checks one word of a value; the error's message has no file and line yet ("must be ..., not 'x'").
Result<void> CheckSiteWord(SiteType type, std::string_view text);
// Whether an environment variable may have that name.
bool IsVariableName(std::string_view text);

}  // namespace overcap
