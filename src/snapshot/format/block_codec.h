// SPDX-License-Identifier: Apache-2.0
// Compression of blocks: tries, and stores what does not get smaller. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

enum class BlockCodec : char { kStored = '0', kLz4 = 'l', kZstd = 'z' };

constexpr int64_t kBlockTarget = 524'288;   // a block is closed when it has this many raw bytes
constexpr int64_t kBlockMost = 12'582'912;  // raw bytes that a reader accepts
constexpr int64_t kChunkMost = 8'388'608;
constexpr int64_t kPackTarget = 16'777'216;  // a pack is closed when it has this many stored bytes

// Keeps the compression contexts of one thread.
class BlockCompressor {
 public:
  BlockCompressor();
  ~BlockCompressor();
  BlockCompressor(const BlockCompressor&) = delete;
  BlockCompressor& operator=(const BlockCompressor&) = delete;

  // Appends the stored form of `raw` to `out` and says how it is stored.
  BlockCodec Compress(std::string_view raw, std::string* out);

 private:
  struct State;
  State* state_;
};

// Exactly `raw_size` bytes or kCorrupt, whatever `stored` holds; never more memory than that.
class BlockDecompressor {
 public:
  BlockDecompressor();
  ~BlockDecompressor();
  BlockDecompressor(const BlockDecompressor&) = delete;
  BlockDecompressor& operator=(const BlockDecompressor&) = delete;

  Result<void> Decompress(BlockCodec codec, std::string_view stored, int64_t raw_size, std::string* raw);

 private:
  struct State;
  State* state_;
};

}  // namespace overcap
