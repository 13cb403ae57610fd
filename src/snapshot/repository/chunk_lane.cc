// SPDX-License-Identifier: Apache-2.0
// The part of a ChunkWriter that runs in the threads of its callers.
#include "base/crc32c.h"
#include "base/text.h"
#include "snapshot/repository/chunk_writer_state.h"

namespace overcap {

ChunkWriter::Lane::Lane(std::unique_ptr<State> state) : state_(std::move(state)) {}

ChunkWriter::Lane::~Lane() {
  if (state_->data_chunks.empty() && state_->meta_chunks.empty()) return;
  // Other lanes rely on chunks that go with it.
  state_->writer->assembly.SetFailed(
      {ErrorCode::kInternal, "a lane of the backup ended before it was flushed", ""});
}

Result<AddedChunk> ChunkWriter::Lane::Add(ChunkKind kind, std::string_view bytes) {
  ChunkWriter::State& writer = *state_->writer;
  OC_TRY_VOID(writer.assembly.Check());
  if (bytes.empty() || bytes.size() > kChunkMost) {
    return Fail(ErrorCode::kInternal, StrCat("a chunk cannot have ", bytes.size(), " bytes"));
  }
  OC_TRY(index, writer.Index());
  AddedChunk added{.id = Sha256Of(bytes)};
  if (index->HasForWriters(added.id) || !writer.claims.Claim(added.id)) return added;
  added.is_new = true;
  writer.new_chunks.fetch_add(1, std::memory_order_relaxed);
  writer.new_bytes.fetch_add(static_cast<int64_t>(bytes.size()), std::memory_order_relaxed);
  Result<void> kept = state_->Append(kind, added.id, bytes);
  if (!kept) {
    writer.assembly.SetFailed(kept.error());
    return Fail(std::move(kept).error());
  }
  return added;
}

Result<void> ChunkWriter::Lane::Flush() {
  OC_TRY_VOID(state_->CloseData());
  return state_->CloseMeta();
}

Result<void> ChunkWriter::Lane::State::Append(ChunkKind kind, const Digest& id, std::string_view bytes) {
  const PackedChunk chunk{id, static_cast<uint32_t>(bytes.size())};
  if (kind == ChunkKind::kMeta) {
    if (!meta_block) meta_block = std::make_shared<OwnMetaBlock>();
    if (meta_chunks.empty()) ++writer->open_blocks;
    writer->own_meta.Append(meta_block, id, bytes);
    meta_chunks.push_back(chunk);
    return meta_block->raw.size() >= kBlockTarget ? CloseMeta() : Result<void>();
  }
  if (bytes.size() >= kBlockTarget || writer->repository.plain_blocks())
    return Send(kind, bytes, {chunk}, nullptr);
  if (data_chunks.empty()) ++writer->open_blocks;
  data_raw.append(bytes);
  data_chunks.push_back(chunk);
  return data_raw.size() >= kBlockTarget ? CloseData() : Result<void>();
}

Result<void> ChunkWriter::Lane::State::CloseData() {
  if (data_chunks.empty()) return {};
  OC_TRY_VOID(Send(ChunkKind::kData, data_raw, std::move(data_chunks), nullptr));
  data_chunks.clear();
  data_raw.clear();
  --writer->open_blocks;
  return {};
}

Result<void> ChunkWriter::Lane::State::CloseMeta() {
  if (meta_chunks.empty()) return {};
  OC_TRY_VOID(Send(ChunkKind::kMeta, meta_block->raw, std::move(meta_chunks), meta_block));
  meta_chunks.clear();
  meta_block = nullptr;
  --writer->open_blocks;
  return {};
}

// A block of its own size: `scratch` has the room for the worst case.
Result<void> ChunkWriter::Lane::State::Send(ChunkKind kind, std::string_view raw,
                                            std::vector<PackedChunk> chunks,
                                            std::shared_ptr<OwnMetaBlock> meta) {
  scratch.clear();
  BlockCodec codec = BlockCodec::kStored;
  if (kind == ChunkKind::kData && writer->repository.plain_blocks()) {
    scratch.append(raw);
  } else {
    codec = compressor.Compress(raw, &scratch);
  }
  CompressedBlock block;
  block.block = {codec, 0, static_cast<uint32_t>(raw.size()), Crc32c(scratch), std::move(chunks)};
  block.stored = std::make_shared<const std::string>(std::string_view(scratch));
  if (meta) writer->own_meta.Compressed(meta.get(), codec, block.stored);
  block.meta = std::move(meta);
  return writer->assembly.Add(kind, std::move(block));
}

}  // namespace overcap
