// SPDX-License-Identifier: Apache-2.0
#include "sys/xpu_smi.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(XpuSmiTest, EveryPhysicalDeviceIsACard) {
  const auto gpus = ParseXpuSmi(R"({
    "device_list": [
        {"device_function_type": "physical", "device_id": 0,
         "device_name": "Intel(R) Data Center GPU Max 1550", "device_type": "GPU", "drm_device": "/dev/dri/card0",
         "pci_bdf_address": "0000:18:00.0", "pci_device_id": "0xbd5",
         "uuid": "00000000-0000-0018-0000-002f0bd58086", "vendor_name": "Intel(R) Corporation"},
        {"device_function_type": "virtual", "device_id": 1, "device_name": "Intel(R) Data Center GPU Max 1550"},
        {"device_id": 2, "device_name": "Intel(R) Data Center GPU Max 1550", "uuid": "u2"}
    ]
})");
  EXPECT_EQ(gpus.value(), (std::vector<GpuFacts>{{0, "Intel(R) Data Center GPU Max 1550",
                                                  "00000000-0000-0018-0000-002f0bd58086", 0},
                                                 {1, "Intel(R) Data Center GPU Max 1550", "u2", 0}}));
}

TEST(XpuSmiTest, AnEmptyListIsNoGpu) {
  EXPECT_EQ(ParseXpuSmi(R"({"device_list": []})").value().size(), 0u);
}

TEST(XpuSmiTest, ItsOwnErrorIsKept) {
  const auto gpus = ParseXpuSmi(R"({"error": "Level Zero Initialization Error", "errno": 1})");
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().message, "xpu-smi says 'Level Zero Initialization Error'");
}

TEST(XpuSmiTest, WhatIsCutOffOrNoJsonIsRefused) {
  for (const char* output :
       {"", "Error: XPUM Service Status Error\n", R"({"device_list": [{"device_id": 0}, )",
        R"({"device_list": {}})", R"({"device_list": [3]})", "{\xff}"}) {
    const auto gpus = ParseXpuSmi(output);
    ASSERT_FALSE(gpus) << output;
    EXPECT_EQ(gpus.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace overcap
