// SPDX-License-Identifier: Apache-2.0
// The commands/*.md, built into the program (cmake/help.cmake makes the .cc).
#pragma once

#include <span>
#include <string_view>

namespace overcap::cli {

struct HelpText {
  std::string_view name;  // file name without ".md": "daemon_status"
  std::string_view markdown;
};
std::span<const HelpText> AllHelpTexts();

}  // namespace overcap::cli
