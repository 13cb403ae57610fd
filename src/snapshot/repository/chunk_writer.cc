// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/chunk_writer.h"

#include "snapshot/repository/chunk_writer_state.h"
#include "snapshot/repository/index_object.h"
#include "snapshot/repository/relied_check.h"

namespace overcap {

ChunkWriter::ChunkWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkWriter::~ChunkWriter() = default;

Result<std::unique_ptr<ChunkWriter>> ChunkWriter::Start(const Repository& repository) {
  OC_TRY(presence, WriterPresence::Register(repository, false));
  std::unordered_set<Digest> condemned = presence->condemned().Packs();
  return std::unique_ptr<ChunkWriter>(
      new ChunkWriter(std::make_unique<State>(repository, std::move(presence), std::move(condemned))));
}

std::unique_ptr<ChunkWriter> ChunkWriter::StartForPrune(const Repository& repository,
                                                        std::unordered_set<Digest> leave) {
  return std::unique_ptr<ChunkWriter>(
      new ChunkWriter(std::make_unique<State>(repository, nullptr, std::move(leave))));
}

std::unique_ptr<ChunkWriter::Lane> ChunkWriter::NewLane() {
  return std::unique_ptr<Lane>(new Lane(std::make_unique<Lane::State>(state_.get())));
}

Result<const ChunkIndex*> ChunkWriter::State::Index() {
  if (const ChunkIndex* ready = ready_index.load(std::memory_order_acquire)) return ready;
  const std::lock_guard lock(index_mutex);
  if (!index) {
    OC_TRY_VOID(assembly.Check());
    Result<void> loaded = LoadIndex();
    if (!loaded) {
      assembly.SetFailed(loaded.error());
      return Fail(std::move(loaded).error());
    }
  }
  return ready_index.load(std::memory_order_acquire);
}

Result<void> ChunkWriter::State::LoadIndex() {
  ChunkIndex::LoadOptions options;
  options.also_condemned = not_relied_on;
  OC_TRY(loaded, ChunkIndex::Load(repository, options, &load_report));
  index.emplace(std::move(loaded));
  reader.emplace(repository, *index);
  ready_index.store(&*index, std::memory_order_release);
  return {};
}

Result<bool> ChunkWriter::Has(const Digest& id) {
  OC_TRY_VOID(state_->assembly.Check());
  OC_TRY(index, state_->Index());
  return index->HasForWriters(id) || state_->claims.Has(id);
}

Result<std::vector<Digest>> ChunkWriter::MissingPacks() {
  OC_TRY_VOID(state_->Index());
  return state_->load_report.missing_packs;
}

Result<std::string> ChunkWriter::GetMeta(const Digest& id) {
  OC_TRY(own, state_->own_meta.Get(state_->repository, id));
  if (own) return *std::move(own);
  OC_TRY_VOID(state_->Index());
  return state_->reader->Get(id);
}

namespace {

// What a writer's index names: its own packs and those whose footers it had to read; or everything, when
// there are so many indexes that one should stand for them all.
std::vector<IndexedPack> PacksToIndex(std::vector<IndexedPack> own, const ChunkIndex* known,
                                      const ChunkIndex::LoadReport& report, bool all) {
  if (known == nullptr) return own;
  const std::unordered_set<Digest> unindexed(report.unindexed_packs.begin(), report.unindexed_packs.end());
  for (uint32_t pack = 0; pack < known->pack_count(); ++pack) {
    if (all || unindexed.contains(known->pack(pack).id)) own.push_back(IndexedPackOf(*known, pack));
  }
  return own;
}

}  // namespace

Result<WriterTotals> ChunkWriter::Finish() {
  State& state = *state_;
  OC_TRY_VOID(state.assembly.Check());
  if (state.open_blocks != 0) return Fail(ErrorCode::kInternal, "a lane of the backup was not flushed");
  OC_TRY_VOID(state.assembly.Drain());
  const std::vector<IndexedPack> own = state.assembly.Packs();
  WriterTotals totals{.new_chunks = state.new_chunks,
                      .new_bytes = state.new_bytes,
                      .stored_bytes = state.index_bytes,
                      .packs = static_cast<int64_t>(own.size())};
  for (const IndexedPack& pack : own) totals.stored_bytes += pack.size;
  if (state.indexed) return totals;
  const bool all = state.load_report.index_keys.size() > kIndexesMost;
  std::vector<IndexedPack> packs = PacksToIndex(own, state.ready_index, state.load_report, all);
  if (!packs.empty()) {
    const std::vector<std::string> none;
    OC_TRY(bytes, PutIndex(state.repository, std::move(packs), all ? state.load_report.index_keys : none));
    state.index_bytes = bytes;
    totals.stored_bytes += bytes;
  }
  state.indexed = true;
  return totals;
}

namespace {

// After a prune gave this writer up: it begins anew, and everything must be in the repository as it is now.
Result<void> CheckAnew(const Repository& repository, WriterPresence* presence, const Digest& tree) {
  OC_TRY_VOID(presence->RegisterAgain());
  OC_TRY(index, ChunkIndex::Load(repository));
  ChunkReader reader(repository, index);
  return CheckTreeIsKept(
      tree, [&](const Digest& id) { return reader.Get(id); },
      [&](const Digest& id) { return index.HasForWriters(id); });
}

}  // namespace

Result<void> ChunkWriter::Publish(const Digest& tree, const std::function<Result<void>()>& put,
                                  const std::function<Result<void>()>& take_back) {
  State& state = *state_;
  if (!state.presence) return Fail(ErrorCode::kInternal, "a prune makes no snapshots");
  OC_TRY(there, state.presence->StillThere());
  if (!there) {
    OC_TRY_VOID(CheckAnew(state.repository, state.presence.get(), tree));
  } else if (!state.not_relied_on.empty()) {
    OC_TRY(index, state.Index());
    OC_TRY_VOID(CheckTreeIsKept(
        tree, [&](const Digest& id) { return GetMeta(id); },
        [&](const Digest& id) { return index->HasForWriters(id) || state.claims.Has(id); }));
  }
  OC_TRY_VOID(put());
  const Result<bool> still = state.presence->StillThere();
  if (still && *still) return {};
  // Given up in the last moment, or so it may be: the prune perhaps did not see what was put.
  Result<void> kept = CheckAnew(state.repository, state.presence.get(), tree);
  if (kept) return {};
  OC_TRY_VOID(take_back());
  return kept;
}

Result<NamedSnapshot> ChunkWriter::Commit(SnapshotRecord record) {
  OC_TRY(totals, Finish());
  record.new_bytes = totals.new_bytes;
  record.stored_bytes = totals.stored_bytes;
  NamedSnapshot snapshot;
  OC_TRY_VOID(Publish(
      record.tree,
      [&]() -> Result<void> {
        OC_TRY(made, state_->repository.PutSnapshot(record));
        snapshot = std::move(made);
        return {};
      },
      [&] { return state_->repository.Forget(snapshot); }));
  return snapshot;
}

}  // namespace overcap
