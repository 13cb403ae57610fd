// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace overcap {

// The environment variables of a process, in their order. Of a name that stands there twice the first counts.
class Variables {
 public:
  Variables() = default;
  explicit Variables(std::vector<std::string> entries) : entries_(std::move(entries)) {}  // NAME=VALUE
  static Variables OfThisProcess();

  bool Has(std::string_view name) const;
  std::string_view Get(std::string_view name) const;  // "" when there is none
  void Set(std::string_view name, std::string_view value);
  void Remove(std::string_view name);
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;
};

}  // namespace overcap
