// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/store_copy.h"

#include <sys/stat.h>

#include "base/text.h"
#include "control/precious_folder.h"
#include "control/transfer/overlap.h"

namespace overcap::cli {
namespace {

bool IsFolderHere(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Buckets of two services may have the same name.
bool AtOneService(World& world, const StorePlace& a, const StorePlace& b) {
  if (a.entry == b.entry || !IsInBucket(a)) return true;
  const StoreBook book = StoreBookOf(world);
  const auto one = FindStoreAccess(book, a), other = FindStoreAccess(book, b);
  return one && other && one->s3.endpoint == other->s3.endpoint &&
         one->azure.endpoint == other->azure.endpoint;
}

Result<void> RefuseIntoItself(World& world, const OpenedStore& from, const StorePlace& to,
                              const std::string& to_key, bool removes) {
  const StoreLocation &source = from.place.location, &target = to.location;
  auto refused = from.key.empty() ? RefuseOverlap(source, target, removes)
                                  : RefuseOverlap(source.Below(from.key), target.Below(to_key), removes);
  if (refused || !AtOneService(world, from.place, to)) return {};
  return refused;
}

Result<TransferReport> CopyOne(World& world, const OpenedStore& from, const StorePlace& to,
                               const TransferOptions& options) {
  const bool into = TakesObjects(world, to);
  OC_TRY(target,
         into ? OpenFolderAt(world, to, !options.dry_run) : OpenObjectAt(world, to, !options.dry_run));
  const std::string key = into ? from.key : target.key;
  OC_TRY_VOID(RefuseIntoItself(world, from, target.place, key, false));
  return TransferOne(*from.store, from.key, *target.store, key, options);
}

Result<TransferReport> CopyAll(World& world, const OpenedStore& from, const StorePlace& to,
                               const TransferOptions& options) {
  OC_TRY_VOID(RefuseIntoItself(world, from, to, "", options.remove_extra));
  if (options.remove_extra && to.location.kind == StoreKind::kFolder)
    OC_TRY_VOID(RefusePreciousFolder(to.location.path, StoreBookOf(world).variables));
  auto target = OpenFolderAt(world, to, !options.dry_run);
  if (target) return TransferAll(*from.store, *target->store, options);
  if (!options.dry_run || target.error().code != ErrorCode::kNotFound) return Fail(target.error());
  return TransferToNowhere(*from.store, options);
}

}  // namespace

bool TakesObjects(World& world, const StorePlace& place) {
  const StoreLocation& to = place.location;
  if (to.open_end) return true;
  if (to.kind == StoreKind::kFolder) return IsFolderHere(to.path);
  if (to.kind == StoreKind::kSsh) return to.path == "~" || OpenFolderAt(world, place, false).has_value();
  return to.kind != StoreKind::kMemory && to.prefix.empty();
}

Result<int> CopyBetweenStores(World& world, const Args& args, const StoreCopy& copy) {
  OC_TRY(to, FindStorePlace(StoreBookOf(world), copy.to));
  OC_TRY(from, OpenSource(world, copy.from));
  if (copy.folders_only && !from.key.empty())
    return Fail(ErrorCode::kUsage, StrCat(Quoted(copy.from, 300), " is a single object"),
                "'overcap store cp' copies it");
  const StopSignals signals;
  const StopGrace grace(signals, StoppedLate(world));
  ProgressMeter meter(world.out(), world.clock());
  OC_TRY(options, TransferOptionsFrom(args, "copy", "copying", &meter, signals));
  options.remove_extra = copy.remove_extra;
  options.dry_run = copy.dry_run;
  options.checksum = copy.checksum;
  options.all = copy.all;
  options.flush = args.Has("--fsync");
  StepSums steps;
  if (copy.dry_run) TellSteps(world, &options, &steps);
  OC_TRY(report, from.key.empty() ? CopyAll(world, from, to, options) : CopyOne(world, from, to, options));
  return TellTransfer(world, report, signals,
                      {meter.ElapsedUs(), IsInBucket(from.place), false, copy.dry_run ? &steps : nullptr});
}

}  // namespace overcap::cli
