// SPDX-License-Identifier: Apache-2.0
// Files with keys in them, of whatever kind.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

// Its text. kNotFound; kDenied when others than its owner may read it, with the chmod to type, or when it is
// another user's; kUsage above 1 MiB.
// A text for which `has_keys` is false may be read by anybody.
Result<std::string> ReadPrivateFile(const std::string& path,
                                    const std::function<bool(const std::string& text)>& has_keys = nullptr);

// An AWS file: values by section and name. Lines that are neither are ignored.
using IniSections = std::map<std::string, std::map<std::string, std::string>>;
IniSections ParseAwsFile(std::string_view text);

// What a storage file says: YAML or JSON, one level of names and texts. kUsage, naming the file but nothing
// of its content, when it is something else.
struct StorageFile {
  std::string account_name, account_key, sas_token, container_name;                  // Azure
  std::string access_key, secret_key, session_token, region, endpoint, bucket_name;  // S3
};
Result<StorageFile> ParseStorageFile(const std::string& text, const std::string& file);

}  // namespace overcap
