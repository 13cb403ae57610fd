// SPDX-License-Identifier: Apache-2.0
#include "stores/key_variables.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace overcap {
namespace {

// Those of a service belong together.
constexpr std::array<std::string_view, 3> kServices[] = {
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
    {"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING"}};

bool Contains(const std::array<std::string_view, 3>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool IsStoreKeyVariable(std::string_view name) {
  return std::any_of(std::begin(kServices), std::end(kServices),
                     [&](const auto& names) { return Contains(names, name); });
}

std::vector<std::string> WithStoreKeysOf(const Variables& own, std::vector<std::string> env) {
  const Variables had(env);
  for (const auto& names : kServices) {
    if (std::any_of(names.begin(), names.end(), [&](std::string_view name) { return had.Has(name); }))
      continue;
    for (const std::string_view name : names) {
      if (own.Has(name)) env.push_back(StrCat(name, "=", own.Get(name)));
    }
  }
  return env;
}

}  // namespace overcap
