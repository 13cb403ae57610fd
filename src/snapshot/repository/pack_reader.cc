// SPDX-License-Identifier: Apache-2.0
// Reads whole packs: neighbouring blocks at once, each decoded once.
#include <algorithm>

#include "base/text.h"
#include "snapshot/repository/block_fetch.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {
namespace {

constexpr int64_t kReadMost = 4'194'304;  // at once, unless one block is larger
constexpr int64_t kGapMost = 131'072;     // read along rather than asked for again

using OnChunk = std::function<Result<void>(const BlockChunk&)>;

// Blocks [begin, end) of the wanted ones, read in one piece.
struct ReadRange {
  size_t begin = 0, end = 0;
  int64_t offset = 0, size = 0;
};

ReadRange NextRange(const KnownPack& pack, const std::vector<WantedBlock>& wanted, size_t begin) {
  const BlockPlace& first = pack.blocks[wanted[begin].block];
  ReadRange range{begin, begin + 1, first.offset, first.stored_size};
  for (; range.end < wanted.size(); ++range.end) {
    const BlockPlace& next = pack.blocks[wanted[range.end].block];
    const int64_t size = next.offset + next.stored_size - range.offset;
    if (size > kReadMost || next.offset - (range.offset + range.size) > kGapMost) break;
    range.size = size;
  }
  return range;
}

bool OfTheObject(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kNotFound;
}

}  // namespace

struct PackReader::State {
  State(const Repository& repository_in, const ChunkIndex& index_in, bool proven_in)
      : repository(repository_in), index(index_in), proven(proven_in), opener(repository_in) {}

  Result<void> ReadRangeOf(uint32_t pack, const std::vector<WantedBlock>& wanted, const ReadRange& range,
                           const OnChunk& on_chunk);
  void FindPlaces(uint32_t pack, uint32_t block);
  int64_t BytesWanted(const WantedBlock& wanted) const;
  // Whether it is as it came, and right.
  bool IsProven(const BlockPlace& place, std::string_view bytes) const {
    return proven && place.codec == BlockCodec::kStored && !repository.master() &&
           bytes.size() == place.stored_size && place.stored_size == place.raw_size;
  }
  struct OpenBlock {
    std::string_view bytes;
    bool proven = false;
  };
  Result<void> HandOut(uint32_t pack, const WantedBlock& wanted, const OpenBlock& block,
                       const OnChunk& on_chunk);
  Result<void> HandOutError(const WantedBlock& wanted, const Error& error, const OnChunk& on_chunk);

  const Repository& repository;
  const ChunkIndex& index;
  const bool proven;
  BlockOpener opener;
  BlockDecompressor decompressor;
  std::string stored, raw;
  struct Place {
    Digest id;
    uint32_t offset = 0, size = 0;
  };
  std::vector<Place> places;  // of the block in `raw`
};

PackReader::PackReader(const Repository& repository, const ChunkIndex& index, Proof proof)
    : state_(std::make_unique<State>(repository, index, proof == Proof::kByStore)) {}
PackReader::~PackReader() = default;

Result<void> PackReader::Read(uint32_t pack, const std::vector<WantedBlock>& blocks,
                              const OnChunk& on_chunk) {
  const KnownPack& known = state_->index.pack(pack);
  for (size_t at = 0; at < blocks.size();) {
    const ReadRange range = NextRange(known, blocks, at);
    OC_TRY_VOID(state_->ReadRangeOf(pack, blocks, range, on_chunk));
    at = range.end;
  }
  return {};
}

Result<void> PackReader::State::ReadRangeOf(uint32_t pack, const std::vector<WantedBlock>& wanted,
                                            const ReadRange& range, const OnChunk& on_chunk) {
  const KnownPack& known = index.pack(pack);
  Result<void> read = repository.store().GetInto(PackKey(known.id), range.offset, range.size, &stored);
  if (!read && !OfTheObject(read.error())) return read;
  if (!read && range.end - range.begin > 1) {  // perhaps only one of them is on a bad spot of the disk
    for (size_t i = range.begin; i < range.end; ++i) {
      const BlockPlace& place = known.blocks[wanted[i].block];
      OC_TRY_VOID(ReadRangeOf(pack, wanted, {i, i + 1, place.offset, place.stored_size}, on_chunk));
    }
    return {};
  }
  for (size_t i = range.begin; i < range.end; ++i) {
    const BlockPlace& place = known.blocks[wanted[i].block];
    Result<void> opened;
    FindPlaces(pack, wanted[i].block);
    OpenBlock block;
    if (read) {
      const auto begin = std::min(static_cast<size_t>(place.offset - range.offset), stored.size());
      block.bytes = std::string_view(stored).substr(begin, place.stored_size);
      block.proven = IsProven(place, block.bytes);
    } else {
      opened = read;
    }
    if (read && !block.proven) {
      opened = opener.Open(known.id, wanted[i].block, place, block.bytes, BytesWanted(wanted[i]),
                           &decompressor, &raw);
      block.bytes = raw;
    }
    if (!opened && !OfTheObject(opened.error())) return opened;
    OC_TRY_VOID(opened ? HandOut(pack, wanted[i], block, on_chunk)
                       : HandOutError(wanted[i], opened.error(), on_chunk));
  }
  return {};
}

void PackReader::State::FindPlaces(uint32_t pack, uint32_t block) {
  places.clear();
  index.ForEachInBlock(pack, block, [&](const Digest& id, const ChunkPlace& place) {
    places.push_back({id, place.offset, place.size});
  });
}

// How far into the block its wanted chunks reach.
int64_t PackReader::State::BytesWanted(const WantedBlock& wanted) const {
  int64_t end = 0;
  for (const uint32_t chunk : wanted.chunks) {
    if (chunk < places.size()) end = std::max(end, int64_t{places[chunk].offset} + places[chunk].size);
  }
  return end;
}

Result<void> PackReader::State::HandOut(uint32_t pack, const WantedBlock& wanted, const OpenBlock& block,
                                        const OnChunk& on_chunk) {
  for (const uint32_t chunk : wanted.chunks) {
    if (chunk >= places.size()) {
      return Fail(ErrorCode::kInternal, StrCat("block ", wanted.block, " has no chunk ", chunk));
    }
    const Place& place = places[chunk];
    const std::string_view bytes = block.bytes.substr(place.offset, place.size);
    const Result<void> sound =
        block.proven ? Result<void>() : CheckChunk(index.pack(pack).id, place.id, bytes);
    BlockChunk out{.block = wanted.block, .chunk = chunk, .bytes = {}, .error = nullptr};
    if (sound) out.bytes = bytes;
    if (!sound) out.error = &sound.error();
    OC_TRY_VOID(on_chunk(out));
  }
  return {};
}

Result<void> PackReader::State::HandOutError(const WantedBlock& wanted, const Error& error,
                                             const OnChunk& on_chunk) {
  for (const uint32_t chunk : wanted.chunks) {
    OC_TRY_VOID(on_chunk({.block = wanted.block, .chunk = chunk, .bytes = {}, .error = &error}));
  }
  return {};
}

}  // namespace overcap
