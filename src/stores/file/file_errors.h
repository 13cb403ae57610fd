// SPDX-License-Identifier: Apache-2.0
// What an errno means for who uses a store in a folder.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

// Something that is neither a file nor a folder has the object's name.
constexpr int kNoFile = ENXIO;

// "cannot <what> '<key>' in store '<location>': <why>", with the code and hint that fit. `key` may be empty.
Error FileStoreError(int error_number, std::string_view what, const std::string& key,
                     const std::string& location);

}  // namespace overcap
