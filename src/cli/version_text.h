// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace overcap::cli {

// What `--version --full`, perhaps with `--json`, prints: this program, the libraries that are linked into it
// with their versions, its compiler and what hardens it. nullopt: the words ask for something else.
std::optional<std::string> FullVersionFor(std::span<const std::string> words);

// What the build knew of a library inside (cmake/overcap.cmake): the distribution's package that it came
// from, with the revision that tells which fixes it has, or "yaml-cpp version". "": nothing.
std::string_view BuildFact(std::string_view name);

}  // namespace overcap::cli
