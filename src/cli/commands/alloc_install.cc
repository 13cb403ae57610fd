// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/commands/allocation_text.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "sys/user.h"

namespace overcap::cli {
namespace {

Result<int> RunAllocInstall(World& world, const Args&) {
  OC_TRY(home, HomeFolder());
  OC_TRY(install, InstallSshInclude(home));
  if (world.out().json()) {
    JsonWriter json;
    json.BeginObject().Field("file", install.file).Field("backup", install.backup);
    world.out().Json(json.Field("changed", install.changed).EndObject().Text());
  } else {
    world.out().Line(InstallLine(install));
  }
  return 0;
}

}  // namespace

constinit const Command kAllocInstall = {
    .name = "alloc install",
    .summary = "let ssh and VS Code know allocations by name",
    .max_words = 0,
    .run = RunAllocInstall,
    .without_config = true,
};

}  // namespace overcap::cli
