// SPDX-License-Identifier: Apache-2.0
#include "sys/rocm_smi.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "sys/json_in_text.h"

namespace overcap {
namespace {

// The first of the fields that holds words and not just a number such as 0x740c.
std::string NameOf(const nlohmann::json& card) {
  for (const char* field : {"Card Series", "Card series", "Device Name", "Card Model", "Card model"}) {
    const auto found = card.find(field);
    if (found == card.end() || !found->is_string()) continue;
    const std::string name = found->get<std::string>();
    if (!name.empty() && !name.starts_with("0x") && name != "N/A") return ToUtf8(name);
  }
  return "";
}

std::string UuidOf(const nlohmann::json& card) {
  const auto found = card.find("Unique ID");
  return found != card.end() && found->is_string() ? ToUtf8(found->get<std::string>()) : "";
}

}  // namespace

std::vector<std::string> RocmSmiCommand() {
  return {"rocm-smi", "--showid", "--showproductname", "--showuniqueid", "--json"};
}

Result<std::vector<GpuFacts>> ParseRocmSmi(std::string_view output) {
  OC_TRY(json, JsonObjectIn(output, "rocm-smi"));
  std::vector<GpuFacts> gpus;
  for (const auto& [key, card] : json.items()) {
    if (!key.starts_with("card") || !card.is_object()) continue;
    const auto index = ParseInt(std::string_view(key).substr(4));
    if (!index || *index < 0 || *index >= 4096) {
      return Fail(ErrorCode::kCorrupt,
                  StrCat("rocm-smi named a GPU '", ToUtf8(key.substr(0, 200)), "' instead of card0"));
    }
    gpus.push_back({static_cast<int>(*index), NameOf(card), UuidOf(card), 0});
  }
  std::ranges::sort(gpus, {}, &GpuFacts::index);
  return gpus;
}

}  // namespace overcap
