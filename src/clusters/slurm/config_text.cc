// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/config_text.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

bool SameWord(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string> FindWord(std::string_view value, std::string_view word) {
  for (const std::string& entry : Split(value, ',')) {
    const size_t equals = std::min(entry.find('='), entry.size());
    if (SameWord(Trim(std::string_view(entry).substr(0, equals)), word)) {
      return entry.substr(std::min(equals + 1, entry.size()));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view SlurmConfig::Get(std::string_view name) const {
  const auto found = values.find(name);
  if (found == values.end() || found->second == "(null)" || found->second == "N/A") return {};
  return found->second;
}

bool SlurmConfig::HasWord(std::string_view name, std::string_view word) const {
  return FindWord(Get(name), word).has_value();
}

std::string SlurmConfig::Word(std::string_view name, std::string_view word) const {
  return FindWord(Get(name), word).value_or("");
}

std::vector<std::string> ConfigCommand() {
  return {"scontrol", "show", "config"};
}

Result<SlurmConfig> ParseConfig(std::string_view text) {
  SlurmConfig config;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) continue;
    const std::string_view name = Trim(line.substr(0, equals));
    if (!name.empty()) config.values.emplace(name, Trim(line.substr(equals + 3)));
  }
  if (config.values.empty()) return Fail(ErrorCode::kCorrupt, "scontrol printed no configuration");
  return config;
}

}  // namespace overcap
