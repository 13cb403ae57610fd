// SPDX-License-Identifier: Apache-2.0
#include "sys/xpu_smi.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "sys/json_in_text.h"

namespace overcap {
namespace {

std::string Text(const nlohmann::json& device, const char* field) {
  const auto found = device.find(field);
  return found != device.end() && found->is_string() ? ToUtf8(found->get<std::string>()) : "";
}

}  // namespace

std::vector<std::string> XpuSmiCommand() {
  return {"xpu-smi", "discovery", "-j"};
}

Result<std::vector<GpuFacts>> ParseXpuSmi(std::string_view output) {
  OC_TRY(json, JsonObjectIn(output, "xpu-smi"));
  const auto list = json.find("device_list");
  if (list == json.end() || !list->is_array()) {
    const std::string error = Text(json, "error");  // {"error": "Level Zero Initialization Error", ...}
    return Fail(ErrorCode::kCorrupt, error.empty() ? "xpu-smi printed no device_list"
                                                   : StrCat("xpu-smi says '", error.substr(0, 200), "'"));
  }
  std::vector<GpuFacts> gpus;
  for (const auto& device : *list) {
    if (!device.is_object()) return Fail(ErrorCode::kCorrupt, "xpu-smi printed a device that is no object");
    if (Text(device, "device_function_type") == "virtual") continue;
    gpus.push_back({static_cast<int>(gpus.size()), Text(device, "device_name"), Text(device, "uuid"), 0});
  }
  return gpus;
}

}  // namespace overcap
