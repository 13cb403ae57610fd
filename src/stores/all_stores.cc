// SPDX-License-Identifier: Apache-2.0
#include "stores/all_stores.h"

#include "base/text.h"
#include "stores/file/file_store.h"
#include "stores/mem/mem_store.h"

namespace overcap {
namespace {

constexpr std::string_view kMemory = "mem:";

template <typename Made>
Result<std::unique_ptr<Store>> AsStore(Result<std::unique_ptr<Made>> made) {
  if (!made) return Fail(std::move(made).error());
  return std::unique_ptr<Store>(std::move(*made));
}

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const std::string& location, bool create) {
  if (location.starts_with('/')) return AsStore(FileStore::Open(location, create));
  if (location.starts_with(kMemory)) return AsStore(MemStore::Named(location.substr(kMemory.size()), create));
  return Fail(ErrorCode::kUsage, StrCat(Quoted(location, 200), " is not the location of a store"),
              "give the absolute path of a folder, as in /nfs/lab/store");
}

}  // namespace overcap
