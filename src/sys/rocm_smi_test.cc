// SPDX-License-Identifier: Apache-2.0
#include "sys/rocm_smi.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(RocmSmiTest, EveryCardIsAGpuInTheOrderOfTheirNumbers) {
  const auto gpus = ParseRocmSmi(
      R"({"card0": {"GPU ID": "0x7408", "Unique ID": "0x1", "Card series": "AMD Instinct MI250X"},
          "card10": {"GPU ID": "0x7408", "Unique ID": "0x3", "Card series": "AMD Instinct MI250X"},
          "card2": {"GPU ID": "0x7408", "Unique ID": "0x2", "Card series": "AMD Instinct MI250X"},
          "system": {"Driver version": "6.3.6"}})");
  EXPECT_EQ(gpus.value(), (std::vector<GpuFacts>{{0, "AMD Instinct MI250X", "0x1", 0},
                                                 {2, "AMD Instinct MI250X", "0x2", 0},
                                                 {10, "AMD Instinct MI250X", "0x3", 0}}));
}

TEST(RocmSmiTest, NewerVersionsNameTheFieldsOtherwise) {
  const auto gpus = ParseRocmSmi(
      "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n"
      R"({"card0": {"Device Name": "AMD Instinct MI300X", "Device ID": "0x74a1", "Card Series": "N/A",)"
      R"( "Card Model": "0x74a1", "GUID": "28851"}})"
      "\n");
  EXPECT_EQ(gpus.value(), (std::vector<GpuFacts>{{0, "AMD Instinct MI300X", "", 0}}));
}

TEST(RocmSmiTest, ACardWithoutANameCounts) {
  EXPECT_EQ(ParseRocmSmi(R"({"card0": {"GPU ID": "0x740c"}})").value().size(), 1u);
  EXPECT_EQ(ParseRocmSmi("{}").value().size(), 0u);
}

TEST(RocmSmiTest, WhatIsCutOffOrNoJsonIsRefused) {
  for (const char* output :
       {"", "ERROR: GPU[0] : sclk clock is unsupported", R"({"card0": {"GPU ID": "0x740c"}, "car)",
        "\x01\xff{\xfe}", R"({"cardX": {}})", R"({"card-1": {}})"}) {
    const auto gpus = ParseRocmSmi(output);
    ASSERT_FALSE(gpus) << output;
    EXPECT_EQ(gpus.error().code, ErrorCode::kCorrupt);
  }
}

TEST(RocmSmiTest, DeeplyNestedJsonDoesNoHarm) {
  const std::string deep = "{\"card0\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_EQ(ParseRocmSmi(deep).value().size(), 0u);
}

}  // namespace
}  // namespace overcap
