// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/commands/store_copy.h"

namespace overcap::cli {
namespace {

constexpr Flag kStoreSyncFlags[] = {
    {"--delete", "", "", "remove what only DST has, after all copies went well"},
    {"--dry-run", "-n", "", "only say what would be copied and removed"},
    kChecksumFlag,
    kFsyncFlag,
    kJobsFlag,
};

Result<int> RunStoreSync(World& world, const Args& args) {
  StoreCopy copy;
  copy.from = args.words()[0];
  copy.to = args.words()[1];
  copy.folders_only = true;
  copy.remove_extra = args.Has("--delete");
  copy.checksum = args.Has("--checksum");
  copy.dry_run = args.Has("--dry-run");
  return CopyBetweenStores(world, args, copy);
}

}  // namespace

constinit const Command kStoreSync = {
    .name = "store sync",
    .summary = "make a folder of a store equal to another",
    .usage = "SRC DST [--delete] [--dry-run] [--checksum] [--fsync] [-j N]",
    .flags = kStoreSyncFlags,
    .min_words = 2,
    .max_words = 2,
    .run = RunStoreSync,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
