// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_copy.h"
#include "cli/commands/store_words.h"

namespace overcap::cli {
namespace {

constexpr int64_t kWeekUs = int64_t{7} * 86400 * 1'000'000;

constexpr Flag kStoreCheckFlags[] = {
    {"--clean", "", "", "of one store: remove what killed copies left behind more than a week ago"},
    kJobsFlag,
};

// "": it has none, or none are found, which opening tells.
std::string KeysFrom(World& world, const StorePlace& place) {
  const Result<StoreAccess> access = FindStoreAccess(StoreBookOf(world), place);
  if (!access) return "";
  return place.location.kind == StoreKind::kAzure ? access->azure.keys_from : access->s3.keys_from;
}

// Whether an object of this name is in a service, where a folder is whatever is asked for.
bool IsObject(World& world, const StorePlace& place) {
  if (!IsInBucket(place) || place.location.open_end || place.location.prefix.empty()) return false;
  const auto opened = OpenObjectAt(world, place, false);
  return opened && opened->store->Get(opened->key, 0, 1);
}

// Can it be reached, listed and read?
Result<int> CheckOne(World& world, const Args& args) {
  OC_TRY(place, FindStorePlace(StoreBookOf(world), args.words()[0]));
  // Before anything can fail: a wrong key is in one of several places.
  const std::string keys_from = KeysFrom(world, place);
  if (!keys_from.empty() && !world.out().json()) world.out().Note(StrCat("keys: ", keys_from));
  OC_TRY(opened, OpenFolderAt(world, place, false));
  OC_TRY(page, opened.store->List("", ""));
  const bool object = page.objects.empty() && IsObject(world, place);
  if (!page.objects.empty()) OC_TRY_VOID(opened.store->Get(page.objects[0].key, 0, 1));
  int64_t cleaned = 0;
  if (args.Has("--clean")) {
    OC_TRY(removed, opened.store->CleanUp(kWeekUs));
    cleaned = removed;
  }
  Output& out = world.out();
  const std::string location = opened.place.location.Text();
  if (out.json()) {
    JsonWriter json;
    json.BeginObject()
        .Field("location", location)
        .Field("ok", true)
        .Field("empty", page.objects.empty() && !object);
    if (!keys_from.empty()) json.Field("keys", keys_from);
    out.Json(json.Field("cleaned", cleaned).EndObject().Text());
    return 0;
  }
  const std::string_view found = object                 ? ": is one object, and can be read"
                                 : page.objects.empty() ? ": can be listed, and is empty"
                                                        : ": can be listed and read";
  out.Line(StrCat(ToUtf8(location), found));
  if (args.Has("--clean")) out.Line(StrCat("removed ", CountOf(cleaned, "leftover")));
  return 0;
}

int Tell(World& world, const StoreComparison& found, const StopSignals& signals, int64_t took_us,
         bool in_bucket) {
  Output& out = world.out();
  out.ClearProgress();
  const int64_t problems = found.missing + found.extra + found.different + found.failed;
  TellProblems(world, found.problems, problems);
  TellLeftOut(world, found.left_out, in_bucket);
  int status = problems > 0 ? ExitStatus(ErrorCode::kConflict) : 0;
  if (found.failed > 0) status = StatusOfProblems(found.problems);
  if (found.stopped && signals.signal() != 0) status = 128 + signals.signal();
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", status).Field("same", found.same);
    json.Field("same_bytes", found.same_bytes)
        .Field("different", found.different)
        .Field("missing", found.missing);
    json.Field("extra", found.extra).Field("failed", found.failed).Field("left_out", found.left_out);
    out.Json(json.Field("seconds", static_cast<double>(took_us) / 1e6).EndObject().Text());
    return status;
  }
  out.Line(StrCat(CountOf(found.same, "file"), " equal (", FormatBytes(found.same_bytes), "); ",
                  found.different, " different, ", found.missing, " missing, ", found.extra, " only there, ",
                  found.failed, " not read"));
  return status;
}

Result<int> CompareTwo(World& world, const Args& args) {
  OC_TRY(to, FindStorePlace(StoreBookOf(world), args.words()[1]));
  OC_TRY(left, OpenSource(world, args.words()[0]));
  const bool one = !left.key.empty(), in_folder = !one || TakesObjects(world, to);
  OC_TRY(right, in_folder ? OpenFolderAt(world, to, false) : OpenObjectAt(world, to, false));
  if (one && in_folder) right.key = left.key;
  const StopSignals signals;
  const StopGrace grace(signals, StoppedLate(world));
  ProgressMeter meter(world.out(), world.clock());
  OC_TRY(options, TransferOptionsFrom(args, "compare", "comparing", &meter, signals));
  OC_TRY(found, one ? CompareOne(*left.store, left.key, *right.store, right.key, options)
                    : CompareAll(*left.store, *right.store, options));
  return Tell(world, found, signals, meter.ElapsedUs(), IsInBucket(left.place) || IsInBucket(to));
}

Result<int> RunStoreCheck(World& world, const Args& args) {
  if (args.words().size() == 1) return CheckOne(world, args);
  if (args.Has("--clean")) return Fail(ErrorCode::kUsage, "--clean is for one store");
  return CompareTwo(world, args);
}

}  // namespace

constinit const Command kStoreCheck = {
    .name = "store check",
    .summary = "whether a store can be used, or whether two hold the same",
    .usage = "LOCATION [OTHER] [--clean] [-j N]",
    .flags = kStoreCheckFlags,
    .min_words = 1,
    .max_words = 2,
    .run = RunStoreCheck,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
