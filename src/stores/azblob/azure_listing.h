// SPDX-License-Identifier: Apache-2.0
// What Azure's answers to listings say. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stores/store.h"

namespace overcap {

struct AzureListPage {
  std::vector<StoredObjectInfo> objects;  // with their whole names, sorted
  std::string marker;                     // of the next page; "": this was the last
};
// Of List Blobs. kCorrupt when it is none.
Result<AzureListPage> ParseAzureList(std::string_view xml);

struct AzureBlock {
  std::string id;  // as base64
  int64_t size = 0;
};
// The uncommitted ones of Get Block List.
Result<std::vector<AzureBlock>> ParseAzureBlocks(std::string_view xml);

// The MD5 as Azure writes it, in hex; "" when it is none.
std::string Md5OfBase64(std::string_view text);

}  // namespace overcap
