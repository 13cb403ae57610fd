// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/table.h"
#include "cli/world.h"
#include "control/config_schema.h"

namespace overcap::cli {
namespace {

void WriteGpus(const std::optional<std::vector<GpuDeclaration>>& gpus, JsonWriter* json) {
  if (!gpus) {
    json->Null();
    return;
  }
  json->BeginArray();
  for (const GpuDeclaration& gpu : *gpus) {
    json->BeginObject()
        .Field("type", gpu.type)
        .Field("count", gpu.count)
        .Field("memory", gpu.memory_bytes)
        .EndObject();
  }
  json->EndArray();
}

// Numbers and switches as such, so that programs need not parse them; sizes in bytes, durations in seconds;
// null where a rule decides.
void WriteValue(const ConfigKey& key, const ConfigField& field, JsonWriter* json) {
  if (IsRule(key, field)) {
    json->Null();
  } else if (auto* const* on = std::get_if<bool*>(&field)) {
    json->Bool(**on);
  } else if (auto* const* small = std::get_if<int*>(&field)) {
    json->Int(**small);
  } else if (auto* const* large = std::get_if<int64_t*>(&field)) {
    json->Int(**large);
  } else if (auto* const* words = std::get_if<std::vector<std::string>*>(&field)) {
    json->BeginArray();
    for (const std::string& word : **words) json->String(word);
    json->EndArray();
  } else if (auto* const* gpus = std::get_if<std::optional<std::vector<GpuDeclaration>>*>(&field)) {
    WriteGpus(**gpus, json);
  } else {
    json->String(ShowValue(key, field));
  }
}

std::string AsJson(const Config& config) {
  Config copy = config;
  JsonWriter json;
  json.BeginObject().Field("files", config.files).Key("values").BeginArray();
  for (const EffectiveValue& value : EffectiveValues(config)) {
    json.BeginObject().Field("key", value.path).Key("value");
    if (value.key == nullptr)
      json.String(value.value);
    else
      WriteValue(*value.key, value.key->field(copy, value.name), &json);
    json.Field("text", value.value).Key("file");
    value.file.empty() ? json.Null() : json.String(value.file);
    json.Key("line");
    value.file.empty() ? json.Null() : json.Int(value.line);
    json.EndObject();
  }
  return json.EndArray().EndObject().Take();
}

Result<int> RunConfigShow(World& world, const Args&) {
  if (world.out().json()) {
    world.out().Json(AsJson(world.config()));
    return 0;
  }
  Table table({{"KEY"}, {"VALUE", false, true}, {"FROM"}});
  for (const EffectiveValue& value : EffectiveValues(world.config())) {
    const bool set = !value.file.empty();
    table.AddRow({value.path, value.value, set ? StrCat(value.file, ":", value.line) : "default"},
                 {Style::kPlain, Style::kPlain, set ? Style::kPlain : Style::kDim});
  }
  world.out().Print(table);
  return 0;
}

}  // namespace

constinit const Command kConfigShow = {.name = "config show",
                                       .summary = "every effective value and the file and line that set it",
                                       .max_words = 0,
                                       .run = RunConfigShow,
                                       .group = CommandGroup::kSetup};

}  // namespace overcap::cli
