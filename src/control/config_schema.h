// SPDX-License-Identifier: Apache-2.0
// The one list of configuration keys: it drives checking, `config show` and the manual.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/config.h"

namespace overcap {

enum class ConfigType {
  kName,
  kDriver,
  kCount,
  kSwitch,
  kDuration,
  kBytes,
  kGpus,
  kNames,   // a list of names, or one text with commas
  kWords,   // a list of words, or one line with blanks between them
  kText,    // one line
  kEnv,     // conda, venv or none
  kLines,   // a list of lines, or one text with a line each
  kFolder,  // may begin with ~ or a variable (expand_folder.h)
  kStore,   // the same, or another location of a store, or a name in `stores:`
};
std::string_view ConfigTypeName(ConfigType type);  // "a whole number", for messages and the manual

// The place in a Config that a key sets; which one is in it follows from the type.
using ConfigField = std::variant<std::string*, int*, int64_t*, bool*, std::vector<std::string>*,
                                 std::optional<std::vector<GpuDeclaration>>*>;

// To which clusters a key of clusters.* means something (DriverTraits::scheduler).
enum class ConfigScope { kAll, kMachine, kScheduler };

struct ConfigKey {
  std::string_view path;  // "defaults.gpus"; '*' stands for the name of a cluster: "clusters.*.cpus"
  ConfigType type;
  int64_t min, max;              // of numbers; min 0 of durations and sizes allows "none"
  std::string_view description;  // one line
  ConfigField (*field)(Config& config, const std::string& name);  // `name` is what '*' stands for
  // The number that stands for a rule, and the rule in words: {0, "detected"}. Of texts and lists: what an
  // empty one stands for.
  int64_t rule_number = 0;
  std::string_view rule = {};
  ConfigScope scope = ConfigScope::kAll;
};

std::span<const ConfigKey> ConfigKeys();

// "clusters.*.cpus" and "big" -> "clusters.big.cpus".
std::string ConfigPath(const ConfigKey& key, std::string_view name);

// Takes the text of a value; the error's message has no file and line yet ("must be ..., not 'x'").
Result<void> SetFromText(const ConfigKey& key, const ConfigField& field, const std::string& text);
// The same for a list, of keys whose field is one.
Result<void> SetFromList(const ConfigKey& key, const ConfigField& field, std::vector<std::string> words);

// Whether a key of clusters.* means something to a cluster of that driver.
bool IsMeantFor(const ConfigKey& key, std::string_view driver);
// kUsage with file and line for the first setting that means nothing to its cluster's driver.
Result<void> CheckClusterSettings(const Config& config);

// The value as a file would say it, or the rule that it stands for.
std::string ShowValue(const ConfigKey& key, const ConfigField& field);
bool IsRule(const ConfigKey& key, const ConfigField& field);  // whether it is a rule, not a value

// Every effective value, in the order of the table; clusters by name, with the keys that mean something to
// them, and of their own defaults those that are set.
struct EffectiveValue {
  std::string path;
  std::string value;
  std::string file;  // "": the default
  int line = 0;
  const ConfigKey* key = nullptr;  // nullptr: of `stores:`, a text
  std::string name;                // what '*' of the key's path stands for
};
std::vector<EffectiveValue> EffectiveValues(const Config& config);

}  // namespace overcap
