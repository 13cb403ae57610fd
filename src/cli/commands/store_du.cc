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

void PrintJson(Output& out, const FolderSums& sums) {
  JsonWriter json;
  json.BeginObject().Field("files", sums.all.files).Field("bytes", sums.all.bytes);
  json.Field("left_out", sums.left_out).Key("folders").BeginArray();
  for (const auto& [name, sum] : sums.folders)
    json.BeginObject().Field("name", name).Field("files", sum.files).Field("bytes", sum.bytes).EndObject();
  out.Json(json.EndArray().EndObject().Text());
}

Result<int> RunStoreDu(World& world, const Args& args) {
  OC_TRY(source, OpenSource(world, args.words()[0]));
  OC_TRY(opened, WithEveryName(world, std::move(source)));
  FolderSums sums;
  if (opened.key.empty()) {
    OC_TRY(counted, SumUp(*opened.store));
    sums = std::move(counted);
  } else {
    OC_TRY(object, opened.store->Stat(opened.key));
    sums.all = {1, object.size};
  }
  if (world.out().json()) {
    PrintJson(world.out(), sums);
    return 0;
  }
  Table table({{"SIZE", true}, {"FILES", true}, {"NAME", false, true}});
  for (const auto& [name, sum] : sums.folders)
    table.AddRow({FormatBytes(sum.bytes), std::to_string(sum.files), name.empty() ? "(files)" : name});
  table.AddRow({FormatBytes(sums.all.bytes), std::to_string(sums.all.files), "in all"});
  world.out().Print(table);
  TellLeftOut(world, sums.left_out, IsInBucket(opened.place));
  return 0;
}

}  // namespace

constinit const Command kStoreDu = {
    .name = "store du",
    .summary = "how much is in a store, and in each of its folders",
    .usage = "LOCATION",
    .min_words = 1,
    .max_words = 1,
    .run = RunStoreDu,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
