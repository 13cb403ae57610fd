// SPDX-License-Identifier: Apache-2.0
// One block of a pack, from its stored bytes to raw ones.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "snapshot/format/block_codec.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// Opens and decompresses `stored`, as far as the first `wanted` raw bytes need it. kCorrupt when it is
// damaged; another error when the pack's head, which has the salt, cannot be read.
class BlockOpener {
 public:
  explicit BlockOpener(const Repository& repository) : repository_(repository) {}
  Result<void> Open(const Digest& pack, uint32_t number, const BlockPlace& place, std::string_view stored,
                    int64_t wanted, BlockDecompressor* decompressor, std::string* raw);

 private:
  Result<std::shared_ptr<const PackSeal>> SealOf(const Digest& pack);

  const Repository& repository_;
  std::mutex mutex_;  // guards last_seal_
  Digest last_pack_;
  std::shared_ptr<const PackSeal> last_seal_;
};

// kCorrupt, naming pack and chunk, unless the bytes have that id.
Result<void> CheckChunk(const Digest& pack, const Digest& id, std::string_view bytes);

}  // namespace overcap
