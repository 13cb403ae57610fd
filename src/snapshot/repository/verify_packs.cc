// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/verify_packs.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "base/text.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/pack_footer.h"

namespace overcap {
namespace {

constexpr unsigned kThreadsMost = 8;

class PackVerifier {
 public:
  PackVerifier(const Repository& repository, const ChunkIndex& index, bool read_data,
               const std::function<void(int64_t, int64_t)>& progress)
      : repository_(repository), index_(index), read_data_(read_data), progress_(progress) {
    for (uint32_t pack = 0; pack < index.pack_count(); ++pack) total_ += index.pack(pack).size;
  }

  Result<PackVerdict> Run() {
    const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, kThreadsMost);
    std::vector<std::thread> threads;
    for (unsigned t = 1; t < std::min(cores, index_.pack_count()); ++t)
      threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    if (error_) return Fail(*std::move(error_));
    std::sort(verdict_.damage.begin(), verdict_.damage.end());
    return std::move(verdict_);
  }

 private:
  void Work() {
    PackReader reader(repository_, index_);
    for (uint32_t pack = next_++; pack < index_.pack_count(); pack = next_++) {
      Result<void> looked = Look(&reader, pack);
      const std::lock_guard lock(mutex_);
      if (!looked && !error_) error_ = std::move(looked).error();
      if (error_) return;
      done_ += index_.pack(pack).size;
      if (progress_) progress_(done_, total_);
    }
  }

  Result<void> Look(PackReader* reader, uint32_t pack) {
    OC_TRY_VOID(LookAtFooter(pack));
    if (!read_data_) return {};
    std::vector<WantedBlock> all;
    for (uint32_t block = 0; block < index_.pack(pack).blocks.size(); ++block) {
      all.push_back({.block = block, .chunks = {}});
      index_.ForEachInBlock(pack, block, [&](const Digest&, const ChunkPlace& place) {
        all.back().chunks.push_back(place.chunk);
      });
    }
    return reader->Read(pack, all, [&](const BlockChunk& chunk) -> Result<void> {
      if (chunk.error == nullptr) {
        const std::lock_guard lock(mutex_);
        verdict_.bytes_read += static_cast<int64_t>(chunk.bytes.size());
      } else {
        TakeBad(pack, chunk);
      }
      return {};
    });
  }

  Result<void> LookAtFooter(uint32_t pack) {
    const KnownPack& known = index_.pack(pack);
    const Result<StoredObjectInfo> info = repository_.store().Stat(PackKey(known.id));
    Result<PackFooter> footer = info ? ReadPackFooter(repository_, known.id, info->size) : Fail(info.error());
    if (footer && footer->blocks != index_.Footer(pack)) {
      Damage(StrCat("pack '", PackKey(known.id), "' is not what the index says"));
    } else if (!footer && footer.error().code == ErrorCode::kUnavailable) {
      return Fail(std::move(footer).error());
    } else if (!footer) {
      Damage(footer.error().message);
    }
    return {};
  }

  void Damage(std::string line) {
    const std::lock_guard lock(mutex_);
    if (std::find(verdict_.damage.begin(), verdict_.damage.end(), line) == verdict_.damage.end()) {
      verdict_.damage.push_back(std::move(line));
    }
  }

  void TakeBad(uint32_t pack, const BlockChunk& chunk) {
    Damage(chunk.error->message);
    index_.ForEachInBlock(pack, chunk.block, [&](const Digest& id, const ChunkPlace& place) {
      if (place.chunk != chunk.chunk || index_.Find(id)->pack != pack) return;
      const std::lock_guard lock(mutex_);
      verdict_.bad.Insert(id);
    });
  }

  const Repository& repository_;
  const ChunkIndex& index_;
  const bool read_data_;
  const std::function<void(int64_t, int64_t)>& progress_;
  int64_t total_ = 0;
  std::atomic<uint32_t> next_ = 0;
  std::mutex mutex_;  // guards what follows
  PackVerdict verdict_;
  std::optional<Error> error_;
  int64_t done_ = 0;
};

}  // namespace

Result<PackVerdict> VerifyPacks(const Repository& repository, const ChunkIndex& index, bool read_data,
                                const std::function<void(int64_t, int64_t)>& progress) {
  return PackVerifier(repository, index, read_data, progress).Run();
}

}  // namespace overcap
