// SPDX-License-Identifier: Apache-2.0
#include "model/machine_json.h"

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"

namespace overcap {
namespace {

using nlohmann::json;

Gpu GpuFrom(const json& value) {
  return Gpu{.index = value.at("index").get<int>(),
             .type = value.value("type", ""),
             .uuid = value.value("uuid", ""),
             .memory_bytes = value.value("memory_bytes", int64_t{0})};
}

}  // namespace

std::string MachineToJson(const Machine& machine) {
  JsonWriter out;
  out.BeginObject()
      .Field("host", machine.host)
      .Field("cpus", machine.cpus)
      .Field("mem_bytes", machine.mem_bytes);
  out.Key("gpus").BeginArray();
  for (const Gpu& gpu : machine.gpus) {
    out.BeginObject().Field("index", gpu.index).Field("type", gpu.type).Field("uuid", gpu.uuid);
    out.Field("memory_bytes", gpu.memory_bytes).EndObject();
  }
  out.EndArray().Field("declared", machine.declared);
  if (!machine.cpu_ids.empty()) {
    out.Key("cpu_ids").BeginArray();
    for (const int id : machine.cpu_ids) out.Int(id);
    out.EndArray();
  }
  return out.EndObject().Take();
}

Result<Machine> MachineFromJson(std::string_view text) {
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded())
    return Fail(ErrorCode::kCorrupt, "the description of a machine cannot be read: it is no JSON");
  return ReadMachine(value);
}

Result<Machine> ReadMachine(const json& value) {
  try {
    Machine machine{.host = value.value("host", ""),
                    .cpus = value.at("cpus").get<int>(),
                    .mem_bytes = value.value("mem_bytes", int64_t{0}),
                    .gpus = {},
                    .declared = value.value("declared", false)};
    for (const json& gpu : value.at("gpus")) machine.gpus.push_back(GpuFrom(gpu));
    if (value.contains("cpu_ids")) machine.cpu_ids = value.at("cpu_ids").get<std::vector<int>>();
    return machine;
  } catch (const json::exception& error) {
    return Fail(ErrorCode::kCorrupt, StrCat("the description of a machine cannot be read: ", error.what()));
  }
}

}  // namespace overcap
