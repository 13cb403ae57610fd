// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"
#include "control/precious_folder.h"
#include "control/transfer/folder_view.h"

namespace overcap::cli {
namespace {

constexpr Flag kStoreRmFlags[] = {
    {"--recursive", "-r", "", "a folder, with all that is in it"},
    {"--dry-run", "-n", "", "only say what would be removed"},
    kJobsFlag,
};

Result<void> RemoveOne(OpenedStore& opened, const TransferOptions& options, TransferReport* report) {
  OC_TRY(object, opened.store->Stat(opened.key));
  if (options.step) options.step({TransferStep::Kind::kRemove, opened.key, object.size, CopyVerdict::kNew});
  if (options.dry_run) return {};
  OC_TRY_VOID(opened.store->Remove(opened.key));
  report->removed = 1;
  return {};
}

Result<int> RunStoreRm(World& world, const Args& args) {
  OC_TRY(source, OpenSource(world, args.words()[0]));
  OC_TRY(opened, WithEveryName(world, std::move(source)));
  if (opened.key.empty() && !args.Has("--recursive"))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(args.words()[0], 300), " is a folder"),
                StrCat("overcap store rm -r ", ShellQuote(args.words()[0])));
  if (opened.key.empty() && opened.place.location.kind == StoreKind::kFolder)
    OC_TRY_VOID(RefusePreciousFolder(opened.place.location.path, StoreBookOf(world).variables));
  const StopSignals signals;
  const StopGrace grace(signals, StoppedLate(world));
  ProgressMeter meter(world.out(), world.clock());
  OC_TRY(options, TransferOptionsFrom(args, "remove", "removing", &meter, signals));
  options.dry_run = args.Has("--dry-run");
  StepSums steps;
  if (options.dry_run) TellSteps(world, &options, &steps);
  TransferReport report;
  if (opened.key.empty()) {
    OC_TRY(removed, RemoveAll(*opened.store, "", options));
    report = std::move(removed);
    const bool here = opened.place.location.kind == StoreKind::kFolder;
    if (here && !options.dry_run && report.failed == 0) RemoveEmptyFolders(opened.place.location.path);
  } else {
    OC_TRY_VOID(RemoveOne(opened, options, &report));
  }
  return TellTransfer(
      world, report, signals,
      {meter.ElapsedUs(), IsInBucket(opened.place), true, options.dry_run ? &steps : nullptr});
}

}  // namespace

constinit const Command kStoreRm = {
    .name = "store rm",
    .summary = "remove an object, or a folder with all that is in it",
    .usage = "LOCATION [-r] [--dry-run] [-j N]",
    .flags = kStoreRmFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunStoreRm,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
