// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/content_writer.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/restore/thread_team.h"

namespace overcap {

ContentWriter::ContentWriter(const Repository& repository, const ChunkIndex& index, const GetMeta& get,
                             bool proven, RestoreScene* scene)
    : repository_(repository),
      index_(index),
      get_(get),
      proof_(proven ? PackReader::Proof::kByStore : PackReader::Proof::kHere),
      scene_(*scene),
      maker_(scene),
      large_(scene) {}

void ContentWriter::Write(const std::vector<uint32_t>& entries) {
  next_ = 0;
  do {
    uses_.clear();
    Collect(entries);
    if (!scene_.ledger.Over()) WriteUses();
  } while (!scene_.ledger.Over() && (next_ < entries.size() || collecting_));
  large_.DropUnfinished(&maker_);
}

void ContentWriter::Collect(const std::vector<uint32_t>& entries) {
  while (!scene_.ledger.Over()) {
    if (collecting_ && !CollectParts()) return;
    if (next_ == entries.size() || uses_.size() >= kUsesAtOnce) return;
    CollectOne(entries[next_++]);
  }
}

void ContentWriter::CollectOne(uint32_t entry) {
  if (scene_.survey.states[entry] == EntryState::kFailed) return;  // its folder could not be made
  if (scene_.tree[entry].content == FileContent::Kind::kMap) {
    collecting_.emplace(Collecting{large_.Add(entry), ContentCursor(scene_.tree[entry], get_)});
    return;
  }
  Result<ChunkUse> use = UseOfWhole(scene_.tree, entry, index_);
  if (use) {
    uses_.push_back(*use);
  } else {
    scene_.survey.states[entry] = EntryState::kFailed;
    scene_.ledger.Problem(entry, use.error().message);
  }
}

bool ContentWriter::CollectParts() {
  const uint32_t file = collecting_->file;
  std::string what;
  while (uses_.size() < kUsesAtOnce) {
    const Result<std::optional<PlacedPart>> part = collecting_->cursor.Next();
    if (!part && part.error().code != ErrorCode::kCorrupt && part.error().code != ErrorCode::kNotFound) {
      scene_.ledger.Abort(part.error());
      return false;
    }
    if (part && *part && (*part)->part.kind == ContentPart::Kind::kHole) {
      if ((*part)->offset + (*part)->part.length == scene_.tree[large_.EntryOf(file)].size)
        large_.EndsInHole(file);
      continue;
    }
    Result<ChunkUse> use = part && *part ? UseOfPart(**part, file, index_) : ChunkUse{};
    if (part && *part && use) {
      large_.ExpectPart(file);
      uses_.push_back(*use);
      continue;
    }
    if (!part) what = part.error().message;
    if (!use) what = use.error().message;
    collecting_.reset();
    large_.Settle(file, what, &maker_);
    return true;
  }
  return false;
}

void ContentWriter::WriteUses() {
  std::sort(uses_.begin(), uses_.end());
  const std::vector<UseRun> runs = CutIntoRuns(uses_, index_, kRunBytes);
  if (runs.empty()) return;
  SharedNumbers numbers(runs.size(), 1);
  RunTeam(std::min(scene_.threads, static_cast<int>(std::min<size_t>(runs.size(), 64))), [&] {
    PackReader reader(repository_, index_, proof_);
    FileMaker maker(&scene_);
    for (size_t begin, end; !scene_.ledger.Over() && numbers.Take(&begin, &end);) {
      WriteRun(runs[begin], &reader, &maker);
    }
  });
}

void ContentWriter::WriteRun(const UseRun& run, PackReader* reader, FileMaker* maker) {
  size_t next = run.begin;
  const Result<void> read =
      reader->Read(run.pack, BlocksOf(uses_, run), [&](const BlockChunk& chunk) -> Result<void> {
        for (; next < run.end && uses_[next].block == chunk.block && uses_[next].chunk == chunk.chunk;
             ++next) {
          if (scene_.ledger.Over()) return Fail(ErrorCode::kConflict, "stopped");
          WriteUse(uses_[next], chunk, maker);
        }
        return {};
      });
  if (read || scene_.ledger.Over()) return;
  if (read.error().code != ErrorCode::kCorrupt && read.error().code != ErrorCode::kNotFound) {
    return scene_.ledger.Abort(read.error());
  }
  for (; next < run.end; ++next) FailUse(uses_[next], read.error(), maker);
}

void ContentWriter::WriteUse(const ChunkUse& use, const BlockChunk& chunk, FileMaker* maker) {
  if (chunk.error != nullptr) return FailUse(use, *chunk.error, maker);
  if (use.offset == ChunkUse::kWhole) return maker->MakeWhole(use.file, chunk.bytes);
  large_.Write(use.file, use.offset, chunk.bytes, maker);
}

void ContentWriter::FailUse(const ChunkUse& use, const Error& error, FileMaker* maker) {
  const std::string what = StrCat("its content is damaged: ", error.message);
  if (use.offset != ChunkUse::kWhole) return large_.FailPart(use.file, what, maker);
  scene_.survey.states[use.file] = EntryState::kFailed;
  scene_.ledger.Problem(use.file, what);
}

}  // namespace overcap
