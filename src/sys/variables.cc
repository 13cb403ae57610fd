// SPDX-License-Identifier: Apache-2.0
#include "sys/variables.h"

#include <algorithm>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

bool IsNamed(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

auto Find(auto& entries, std::string_view name) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const std::string& entry) { return IsNamed(entry, name); });
}

}  // namespace

Variables Variables::OfThisProcess() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return Variables(std::move(entries));
}

bool Variables::Has(std::string_view name) const {
  return Find(entries_, name) != entries_.end();
}

std::string_view Variables::Get(std::string_view name) const {
  const auto found = Find(entries_, name);
  if (found == entries_.end()) return {};
  return std::string_view(*found).substr(name.size() + 1);
}

void Variables::Set(std::string_view name, std::string_view value) {
  std::string entry = StrCat(name, "=", value);
  const auto found = Find(entries_, name);
  if (found == entries_.end()) {
    entries_.push_back(std::move(entry));
  } else {
    *found = std::move(entry);
  }
}

void Variables::Remove(std::string_view name) {
  std::erase_if(entries_, [&](const std::string& entry) { return IsNamed(entry, name); });
}

}  // namespace overcap
