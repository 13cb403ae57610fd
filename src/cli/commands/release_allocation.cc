// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/release_allocation.h"

#include "base/json_writer.h"
#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr int64_t kPatienceSeconds = 20;

}  // namespace

Result<void> ReleaseAllocation(World& world, const AllocWorld& allocations, const AllocationState& held) {
  Output& out = world.out();
  out.Progress(StrCat("giving back '", held.allocation.name, "'"));
  OC_TRY(ended, EndAllocation(allocations, held, kPatienceSeconds));
  out.ClearProgress();
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("name", held.allocation.name).Field("job", held.allocation.job);
    out.Json(json.Field("ended", ended).EndObject().Text());
  } else {
    out.Line(StrCat(held.allocation.name,
                    ended ? "  released" : "  is being released: its job has not ended yet"));
  }
  return {};
}

}  // namespace overcap::cli
