// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"
#include "cli/table.h"
#include "control/transfer/folder_view.h"

namespace overcap::cli {
namespace {

constexpr Flag kStoreLsFlags[] = {
    {"--recursive", "-R", "", "all that is below, too"},
    {"--long", "-l", "", "with size and time"},
};

std::string AsJson(const FolderLine& line) {
  JsonWriter json;
  json.BeginObject().Field("name", line.name).Field("type", line.folder ? "folder" : "file");
  if (!line.folder)
    json.Field("bytes", line.object.size).Field("modified", FormatTimeUtc(line.object.modified_us));
  return json.EndObject().Take();
}

// Line by line, so that a long list needs no memory.
void Show(Output& out, const FolderLine& line, bool with_size) {
  if (out.json()) return out.Json(AsJson(line));
  const std::string name = line.name.empty() ? "/" : ShownName(line.name);  // an object "folder/" in "folder"
  if (!with_size) return out.Line(name);
  std::string size = line.folder ? "" : FormatBytes(line.object.size);
  if (size.size() < 10) size.insert(0, 10 - size.size(), ' ');
  const std::string time = line.folder ? std::string(19, ' ') : FormatTimeLocal(line.object.modified_us);
  out.Line(StrCat(size, "  ", time, "  ", name));
}

Result<int> ListStores(World& world) {
  Table table({{"NAME"}, {"LOCATION", false, true}});
  JsonWriter json;
  json.BeginArray();
  for (const auto& [name, entry] : world.config().stores) {
    table.AddRow({name, entry.at});
    json.BeginObject().Field("name", name).Field("location", entry.at).EndObject();
  }
  if (world.out().json())
    world.out().Json(json.EndArray().Text());
  else if (table.rows() == 0)
    world.out().Note("there are no 'stores:' in overcap.yaml; give a location: s3://bucket/prefix, a path");
  else
    world.out().Print(table);
  return 0;
}

Result<int> RunStoreLs(World& world, const Args& args) {
  if (args.words().empty()) return ListStores(world);
  OC_TRY(source, OpenSource(world, args.words()[0]));
  OC_TRY(opened, WithEveryName(world, std::move(source)));
  Output& out = world.out();
  const bool with_size = args.Has("--long");
  if (!opened.key.empty()) {
    OC_TRY(object, opened.store->Stat(opened.key));
    Show(out, {opened.key, object, false}, with_size);
    return 0;
  }
  // Azure's listings go on by marks of its own.
  const bool skip = opened.place.location.kind != StoreKind::kAzure;
  const auto show = [&](const FolderLine& line) { Show(out, line, with_size); };
  OC_TRY(left_out,
         args.Has("--recursive") ? VisitObjects(*opened.store, show) : VisitLevel(*opened.store, skip, show));
  TellLeftOut(world, left_out, IsInBucket(opened.place));
  return 0;
}

}  // namespace

constinit const Command kStoreLs = {
    .name = "store ls",
    .summary = "what is in a store; without a location, which stores overcap.yaml names",
    .usage = "[LOCATION] [-R] [-l]",
    .flags = kStoreLsFlags,
    .max_words = 1,
    .run = RunStoreLs,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
