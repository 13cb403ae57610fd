// SPDX-License-Identifier: Apache-2.0
// Compression of blocks: tries, and stores what does not get smaller. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

enum class BlockCodec : char { kStored = '0', kLz4 = 'l', kZstd = 'z' };

// A block is closed when it has this many raw bytes. Larger ones are hardly smaller in the end, and a single
// file out of one costs more.
constexpr int64_t kBlockTarget = 131'072;
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

// Memory is bounded by what a block may hold, whatever `stored` says.
class BlockDecompressor {
 public:
  BlockDecompressor();
  ~BlockDecompressor();
  BlockDecompressor(const BlockDecompressor&) = delete;
  BlockDecompressor& operator=(const BlockDecompressor&) = delete;

  // Exactly `raw_size` bytes or kCorrupt.
  Result<void> Decompress(BlockCodec codec, std::string_view stored, int64_t raw_size, std::string* raw) {
    return DecompressFront(codec, stored, raw_size, raw_size, raw);
  }
  // At least the first `wanted` of them, without the work for the rest; what `raw` has behind them is open.
  Result<void> DecompressFront(BlockCodec codec, std::string_view stored, int64_t raw_size, int64_t wanted,
                               std::string* raw);

 private:
  struct State;
  State* state_;
};

}  // namespace overcap
