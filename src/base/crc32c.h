// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace overcap {

// CRC-32C (Castagnoli), by the CPU's own instruction where it has one.
uint32_t Crc32c(std::string_view data);

// The same by table, on any CPU; here for the test that compares the two.
uint32_t Crc32cPortable(std::string_view data);

}  // namespace overcap
