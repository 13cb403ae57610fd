// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/commands/store_copy.h"
#include "cli/commands/store_pipe.h"

namespace overcap::cli {
namespace {

constexpr Flag kStoreCpFlags[] = {
    kChecksumFlag,
    {"--force", "-f", "", "copy also what is there already and the same"},
    {"--dry-run", "-n", "", "only say what would be copied"},
    kFsyncFlag,
    kJobsFlag,
};

Result<int> RunStoreCp(World& world, const Args& args) {
  StoreCopy copy;
  copy.from = args.words()[0];
  copy.to = args.words()[1];
  copy.checksum = args.Has("--checksum");
  copy.all = args.Has("--force");
  copy.dry_run = args.Has("--dry-run");
  if (copy.from == kPipe || copy.to == kPipe) return CopyThroughPipe(world, args, copy);
  return CopyBetweenStores(world, args, copy);
}

}  // namespace

constinit const Command kStoreCp = {
    .name = "store cp",
    .summary = "copy a file or a folder between folders, S3, Azure and ssh",
    .usage = "SRC DST [--checksum] [--force] [--dry-run] [--fsync] [-j N]",
    .flags = kStoreCpFlags,
    .min_words = 2,
    .max_words = 2,
    .run = RunStoreCp,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
