// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/torchrun_flags.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.h"
#include "cli/commands/torchrun_console.h"

namespace overcap::cli {
namespace {

// "--log-dir" -> "PET_LOG_DIR"
std::string VariableOf(std::string_view flag) {
  std::string name = "PET_";
  for (const unsigned char c : flag.substr(2)) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

}  // namespace

Result<Args> WithTorchrunVariables(Args args, const Variables& variables) {
  if (args.Has("--ranks") || args.Has("--rdzv")) return args;
  for (const TorchrunFlag& known : kTorchrunFlags) {
    const std::string name = VariableOf(known.flag.name);
    const std::string_view value = variables.Get(name);
    if (!known.variable || value.empty() || args.Has(known.flag.name)) continue;
    if (known.flag.value.empty()) {
      const auto number = ParseInt(value);
      if (!number) return Fail(ErrorCode::kUsage, StrCat(name, ": ", Quoted(value), " is neither 0 nor 1"));
      if (*number == 0) continue;
    }
    args.flags_.emplace_back(known.flag.name, known.flag.value.empty() ? "" : value);
    args.typed_.push_back(name);
  }
  return args;
}

std::string IgnoredFlags(const Args& args) {
  std::vector<std::string> given;
  for (const TorchrunFlag& known : kTorchrunFlags) {
    if (known.use == TorchrunUse::kIgnored && args.Has(known.flag.name))
      given.emplace_back(args.Typed(known.flag.name));
  }
  return given.empty() ? "" : StrCat(Join(given, ", "), ": no effect here");
}

bool AsksAsTorchrun(const Args& args) {
  if (args.Get("--nnodes").find(':') != std::string_view::npos || IsTorchrunTee(args.Get("--tee")))
    return true;
  return std::ranges::any_of(kTorchrunFlags, [&](const TorchrunFlag& known) {
    return known.use == TorchrunUse::kGroup && args.Has(known.flag.name);
  });
}

}  // namespace overcap::cli
