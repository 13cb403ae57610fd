// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/release_allocation.h"

namespace overcap::cli {
namespace {

Result<int> RunAllocRelease(World& world, const Args& args) {
  OC_TRY(allocations, AllocationsOf(world));
  for (const std::string& name : args.words()) {
    const auto held = FindAllocation(allocations, name);
    if (!held) {
      return Fail(ErrorCode::kNotFound, StrCat("there is no allocation ", Quoted(name)),
                  "overcap alloc list shows what you hold");
    }
    OC_TRY_VOID(ReleaseAllocation(world, allocations, *held));
  }
  return 0;
}

}  // namespace

constinit const Command kAllocRelease = {
    .name = "alloc release",
    .summary = "give back what you hold",
    .usage = "NAME...",
    .min_words = 1,
    .run = RunAllocRelease,
};

}  // namespace overcap::cli
