// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/block_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <lz4.h>
#include <memory>
#include <zstd.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kLevel = 1;
// Up to here trying is dearer than doing it.
constexpr size_t kSampledFrom = 131'072;
constexpr size_t kPiece = 16'384, kPieces = 2;
// Neighbours are of one kind: what was right for a block is not tried again for the next few.
constexpr int kTrusted = 7;

// What a part of a block must leave undone to be decoded apart, and how much of it is decoded at a time.
constexpr int64_t kWorthLeaving = 65'536;
constexpr size_t kFed = 16'384;
constexpr int kWindowLogMost = 24;  // no block needs more than kBlockMost

// "Smaller by at least 1/32".
bool Pays(size_t stored, size_t raw) {
  return stored <= raw - raw / 32 && stored < raw;
}

// By a sixteenth of what there is, or where hardly anything is left of it by a quarter of that: lz4 is
// written twice and read back three times as fast.
bool ZstdBeats(size_t zstd, size_t lz4, size_t raw) {
  const size_t other = std::min(lz4, raw);
  return zstd + raw / 16 <= other || zstd <= other - other / 4;
}

}  // namespace

struct BlockCompressor::State {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  std::unique_ptr<char[]> lz4{new char[static_cast<size_t>(LZ4_sizeofState())]};
  std::unique_ptr<char[]> room;  // not initialised, unlike a string that is resized
  size_t room_size = 0;
  BlockCodec last = BlockCodec::kStored;
  int trusted = 0;  // blocks for which `last` is taken without a try

  ~State() { ZSTD_freeCCtx(zstd); }

  void MakeRoom(size_t raw) {
    const size_t needed =
        std::max(ZSTD_compressBound(raw), static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw))));
    if (needed <= room_size) return;
    room.reset(new char[needed]);
    room_size = needed;
  }

  // Both: the size of what stands in `room` then; that of `raw` when it failed.
  size_t Zstd(std::string_view raw) {
    if (zstd == nullptr) return raw.size();
    const size_t size = ZSTD_compressCCtx(zstd, room.get(), room_size, raw.data(), raw.size(), kLevel);
    return ZSTD_isError(size) != 0 ? raw.size() : size;
  }
  size_t Lz4(std::string_view raw) {
    const int size = LZ4_compress_fast_extState(lz4.get(), raw.data(), room.get(),
                                                static_cast<int>(raw.size()), static_cast<int>(room_size), 1);
    return size <= 0 ? raw.size() : static_cast<size_t>(size);
  }

  // By pieces from the inside, away from headers.
  BlockCodec Sample(std::string_view raw) {
    size_t by_zstd = 0, by_lz4 = 0;
    for (size_t i = 1; i <= kPieces; ++i) {
      const std::string_view piece = raw.substr(raw.size() / (kPieces + 1) * i, kPiece);
      by_lz4 += Lz4(piece);
      by_zstd += Zstd(piece);
    }
    constexpr size_t kSample = kPiece * kPieces;
    if (!Pays(std::min(by_zstd, by_lz4), kSample)) return BlockCodec::kStored;
    return ZstdBeats(by_zstd, by_lz4, kSample) ? BlockCodec::kZstd : BlockCodec::kLz4;
  }

  BlockCodec Choose(std::string_view raw) {
    if (raw.size() < kSampledFrom) return BlockCodec::kZstd;
    if (trusted > 0) {
      --trusted;
      return last;
    }
    last = Sample(raw);
    trusted = last == BlockCodec::kStored ? 0 : kTrusted;
    return last;
  }
};

BlockCompressor::BlockCompressor() : state_(new State) {}
BlockCompressor::~BlockCompressor() {
  delete state_;
}

BlockCodec BlockCompressor::Compress(std::string_view raw, std::string* out) {
  state_->MakeRoom(raw.size());
  const BlockCodec codec = state_->Choose(raw);
  const size_t size = codec == BlockCodec::kStored ? raw.size()
                      : codec == BlockCodec::kZstd ? state_->Zstd(raw)
                                                   : state_->Lz4(raw);
  if (Pays(size, raw.size())) {
    out->append(state_->room.get(), size);
    return codec;
  }
  state_->trusted = 0;
  out->append(raw);
  return BlockCodec::kStored;
}

struct BlockDecompressor::State {
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  ~State() { ZSTD_freeDCtx(zstd); }

  bool Decode(BlockCodec codec, std::string_view stored, std::string* raw) {
    switch (codec) {
      case BlockCodec::kStored:
        if (stored.size() == raw->size()) std::memcpy(raw->data(), stored.data(), stored.size());
        return stored.size() == raw->size();
      case BlockCodec::kLz4:
        return LZ4_decompress_safe(stored.data(), raw->data(), static_cast<int>(stored.size()),
                                   static_cast<int>(raw->size())) == static_cast<int>(raw->size());
      case BlockCodec::kZstd:
        // All at once into the caller's bytes: no window is allocated, whatever the frame asks for.
        return zstd != nullptr && ZSTD_decompressDCtx(zstd, raw->data(), raw->size(), stored.data(),
                                                      stored.size()) == raw->size();
    }
    return false;
  }

  bool DecodeFront(BlockCodec codec, std::string_view stored, size_t wanted, std::string* raw) {
    switch (codec) {
      case BlockCodec::kStored:
        return Decode(codec, stored, raw);
      case BlockCodec::kLz4:
        return LZ4_decompress_safe_partial(stored.data(), raw->data(), static_cast<int>(stored.size()),
                                           static_cast<int>(wanted),
                                           static_cast<int>(raw->size())) >= static_cast<int>(wanted);
      case BlockCodec::kZstd:
        return zstd != nullptr && ZstdFront(stored, wanted, raw);
    }
    return false;
  }

  // Gives it as much as it asks for, a part of the frame at a time, until enough has come out.
  bool ZstdFront(std::string_view stored, size_t wanted, std::string* raw) {
    ZSTD_DCtx_reset(zstd, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, kWindowLogMost)) != 0) return false;
    ZSTD_outBuffer out{raw->data(), raw->size(), 0};
    ZSTD_inBuffer in{stored.data(), 0, 0};
    while (out.pos < wanted) {
      if (in.pos == in.size && in.size == stored.size()) return false;
      in.size = std::min(stored.size(), in.pos + kFed);
      const size_t left = ZSTD_decompressStream(zstd, &out, &in);
      if (ZSTD_isError(left) != 0 || (left == 0 && out.pos < wanted)) return false;
    }
    return true;
  }
};

BlockDecompressor::BlockDecompressor() : state_(new State) {}
BlockDecompressor::~BlockDecompressor() {
  delete state_;
}

Result<void> BlockDecompressor::DecompressFront(BlockCodec codec, std::string_view stored, int64_t raw_size,
                                                int64_t wanted, std::string* raw) {
  const bool allowed =
      raw_size > 0 && raw_size <= kBlockMost && !stored.empty() && stored.size() <= kBlockMost;
  if (allowed) {
    raw->resize(static_cast<size_t>(raw_size));
    const bool worth = wanted + kWorthLeaving <= raw_size;
    if (worth ? state_->DecodeFront(codec, stored, static_cast<size_t>(wanted), raw)
              : state_->Decode(codec, stored, raw))
      return {};
  }
  raw->clear();
  return Fail(ErrorCode::kCorrupt, StrCat("the block is damaged: it does not hold its ", raw_size, " bytes"));
}

}  // namespace overcap
