// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace overcap {

// The files of examples/sites, as they were when the program was built (cmake/embed_texts.cmake).
struct BuiltInSite {
  std::string_view name;  // of the file, without .yaml
  std::string_view text;
};
std::span<const BuiltInSite> BuiltInSites();

}  // namespace overcap
