// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/daemon_words.h"

#include "base/text.h"
#include "cli/world.h"
#include "control/system_unit.h"

namespace overcap::cli {

Result<SystemWords> SystemWordsOf(const Args& args) {
  for (const std::string_view flag : {"--socket", "--stall", "--slack", "--print-unit"}) {
    if (args.Has(flag) && !args.Has("--system"))
      return Fail(ErrorCode::kUsage, StrCat("flag '", flag, "' needs --system"));
  }
  OC_TRY(stall, args.GetInt("--stall", kUsualStallSeconds, 1, 86400));
  OC_TRY(slack, args.GetInt("--slack", kUsualSlackSeconds, 1, 86400));
  return CompleteSystemWords({std::string(args.Get("--root")), std::string(args.Get("--socket")),
                              std::string(args.Get("--policy")), static_cast<int>(stall),
                              static_cast<int>(slack)});
}

Result<int> PrintSystemUnit(World& world, const SystemWords& words) {
  OC_TRY(warning, CheckRootsProgram(world.binary()));
  if (!warning.empty()) world.out().Warn(warning);
  world.out().Line(SystemUnit(world.binary(), SystemFlags(words)));
  return 0;
}

}  // namespace overcap::cli
