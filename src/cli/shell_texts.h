// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace overcap::cli {

// The files of src/cli/shell, as they were when the program was built (cmake/embed_texts.cmake).
struct ShellText {
  std::string_view name;  // "common", "bash", "zsh"
  std::string_view text;
};
std::span<const ShellText> ShellTexts();

}  // namespace overcap::cli
