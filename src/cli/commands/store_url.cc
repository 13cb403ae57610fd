// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"

namespace overcap::cli {
namespace {

constexpr Flag kStoreUrlFlags[] = {
    {"--expires", "", "TIME", "how long it is good for; by default 1h, at most 7d"},
};

Result<int> RunStoreUrl(World& world, const Args& args) {
  int64_t seconds = 3600;
  if (args.Has("--expires")) {
    OC_TRY(asked, OfFlag("--expires", ParseDurationSeconds(args.Get("--expires"))));
    seconds = asked;
  }
  OC_TRY(opened, OpenSource(world, args.words()[0]));
  if (opened.key.empty())
    return Fail(ErrorCode::kUsage,
                StrCat(Quoted(args.words()[0], 300), " is a folder; a URL is for one object"));
  OC_TRY(url, UrlOfObject(StoreBookOf(world), opened.place, opened.key, seconds));
  if (world.out().json()) {
    JsonWriter json;
    const int64_t until = world.clock().WallUs() + seconds * 1'000'000;
    world.out().Json(
        json.BeginObject().Field("url", url).Field("expires", FormatTimeUtc(until)).EndObject().Text());
  } else {
    world.out().Line(url);
  }
  return 0;
}

}  // namespace

constinit const Command kStoreUrl = {
    .name = "store url",
    .summary = "a URL with which anybody may download an object for a while",
    .usage = "LOCATION [--expires TIME]",
    .flags = kStoreUrlFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunStoreUrl,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
