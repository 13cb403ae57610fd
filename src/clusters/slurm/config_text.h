// SPDX-License-Identifier: Apache-2.0
// The controller's configuration, as `scontrol show config` tells it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

class SlurmConfig {
 public:
  // "" when it is not there or says that nothing was set ("(null)", "N/A").
  std::string_view Get(std::string_view name) const;
  // The value of one word of a list: "5" for Word("AuthInfo", "cred_expire") of "socket=/x,cred_expire=5";
  // "" for a word without a value; none when it is not among them. Words compare without case.
  bool HasWord(std::string_view name, std::string_view word) const;
  std::string Word(std::string_view name, std::string_view word) const;

  std::map<std::string, std::string, std::less<>> values;
};

std::vector<std::string> ConfigCommand();

// kCorrupt when no line is "Name = value".
Result<SlurmConfig> ParseConfig(std::string_view text);

}  // namespace overcap
