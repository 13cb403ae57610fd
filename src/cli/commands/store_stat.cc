// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"

namespace overcap::cli {
namespace {

Result<int> RunStoreStat(World& world, const Args& args) {
  OC_TRY(opened, OpenSource(world, args.words()[0]));
  const std::string location = opened.place.location.Below(opened.key).Text();
  if (opened.key.empty())
    return Fail(ErrorCode::kNotFound, StrCat(Quoted(location, 300), " is a folder, not an object"),
                StrCat("'overcap store du ", ShellQuote(args.words()[0]), "' counts what is in it"));
  OC_TRY(object, opened.store->Stat(opened.key));
  Output& out = world.out();
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("location", location).Field("bytes", object.size);
    json.Field("modified", FormatTimeUtc(object.modified_us)).Field("version", object.version);
    out.Json(json.Field("md5", object.md5).EndObject().Text());
    return 0;
  }
  out.Line(StrCat("location  ", ShownName(location)));
  out.Line(StrCat("size      ", object.size, " (", FormatBytes(object.size), ")"));
  out.Line(StrCat("modified  ", FormatTimeLocal(object.modified_us)));
  if (!object.version.empty()) out.Line(StrCat("version   ", ToUtf8(object.version)));
  if (!object.md5.empty()) out.Line(StrCat("md5       ", object.md5));
  return 0;
}

}  // namespace

constinit const Command kStoreStat = {
    .name = "store stat",
    .summary = "size, time and checksum of one object",
    .usage = "LOCATION",
    .min_words = 1,
    .max_words = 1,
    .run = RunStoreStat,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
