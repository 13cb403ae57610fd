// SPDX-License-Identifier: Apache-2.0
#include "snapshot/folder_builder.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/format/content_map.h"
#include "snapshot/parallel.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

constexpr int64_t kRunBytes = 256 << 10;  // stored; what a thread takes at once

}  // namespace

Result<void> FolderBuilder::Build(const std::string& path) {
  path_ = path;
  if (mkdir(path.c_str(), 0700) != 0) return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
  Result<void> filled = Fill();
  if (!filled) (void)RemoveTree(path);
  return filled;
}

Result<void> FolderBuilder::Fill() {
  fd_ = Fd(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd_) return WriteError({});
  Result<std::vector<CodeEntry>> entries = tree_.Entries();
  if (!entries) return Fail(std::move(entries).error());
  entries_ = *std::move(entries);
  for (uint32_t number = 0; number < entries_.size(); ++number) OC_TRY_VOID(BeginEntry(number));
  return WriteContents();
}

Result<void> FolderBuilder::BeginEntry(uint32_t number) {
  const CodeEntry& entry = entries_[number];
  if (entry.kind == EntryKind::kFolder) {
    return mkdirat(fd_.Get(), entry.path.c_str(), 0700) == 0 ? Result<void>() : WriteError(entry);
  }
  ++files_;
  bytes_ += entry.size;
  if (entry.kind != EntryKind::kLink) return BeginFile(number);
  OC_TRY_VOID(CheckCancelled());
  return symlinkat(entry.target.c_str(), fd_.Get(), entry.path.c_str()) == 0 ? Result<void>()
                                                                             : WriteError(entry);
}

// Files of one chunk are made when that is there.
Result<void> FolderBuilder::BeginFile(uint32_t number) {
  const CodeEntry& entry = entries_[number];
  if (entry.content.kind == FileContent::Kind::kChunk) {
    return Want(number, entry.content.id, entry.size, ChunkUse::kWhole);
  }
  const Fd fd = Open(entry, O_CREAT | O_EXCL);
  if (!fd || ftruncate(fd.Get(), entry.size) != 0) return WriteError(entry);
  if (entry.content.kind == FileContent::Kind::kEmpty) return {};
  const auto get = [this](const Digest& id) { return tree_.GetMeta(id); };
  const Result<std::vector<ContentPart>> parts = ReadContentMaps(entry.content.id, entry.size, get);
  if (!parts) return Damaged(entry, entry.content.id, parts.error().message);
  int64_t offset = 0;
  for (const ContentPart& part : *parts) {
    if (part.kind == ContentPart::Kind::kChunk) OC_TRY_VOID(Want(number, part.id, part.length, offset));
    offset += part.length;
  }
  return {};
}

Result<void> FolderBuilder::Want(uint32_t number, const Digest& chunk, int64_t length, int64_t offset) {
  const std::optional<ChunkPlace> place = tree_.index().Find(chunk);
  if (!place) return Damaged(entries_[number], chunk, "it is missing");
  if (place->size != length) return Damaged(entries_[number], chunk, "it has another size");
  uses_.push_back({place->pack, place->block, place->chunk, number, offset});
  return {};
}

Result<void> FolderBuilder::WriteContents() {
  std::sort(uses_.begin(), uses_.end());
  const std::vector<UseRun> runs = CutIntoRuns(uses_, tree_.index(), kRunBytes);
  return ParallelFor(runs.size(),
                     [&](size_t i) {
                       PackReader reader(tree_.store().repository(), tree_.index());
                       return WriteRun(runs[i], &reader);
                     },
                     {.items_per_thread = 1, .run = 1});
}

Result<void> FolderBuilder::WriteRun(const UseRun& run, PackReader* reader) {
  size_t at = run.begin;
  return reader->Read(run.pack, BlocksOf(uses_, run), [&](const BlockChunk& chunk) -> Result<void> {
    for (; at < run.end && uses_[at].block == chunk.block && uses_[at].chunk == chunk.chunk; ++at) {
      OC_TRY_VOID(WriteChunk(uses_[at], chunk));
    }
    return {};
  });
}

Result<void> FolderBuilder::WriteChunk(const ChunkUse& use, const BlockChunk& chunk) {
  OC_TRY_VOID(CheckCancelled());
  const CodeEntry& entry = entries_[use.file];
  if (chunk.error != nullptr) {
    Digest id;
    tree_.index().ForEachInBlock(use.pack, use.block, [&](const Digest& each, const ChunkPlace& place) {
      if (place.chunk == use.chunk) id = each;
    });
    return Damaged(entry, id, chunk.error->message);
  }
  const bool whole = use.offset == ChunkUse::kWhole;
  const Fd fd = Open(entry, whole ? O_CREAT | O_EXCL : 0);
  if (!fd || (!whole && lseek(fd.Get(), use.offset, SEEK_SET) < 0) || !WriteWhole(fd.Get(), chunk.bytes)) {
    return WriteError(entry);
  }
  return {};
}

Result<void> FolderBuilder::CheckCancelled() const {
  if (cancelled_ && std::this_thread::get_id() == caller_ && cancelled_()) {
    return Fail(ErrorCode::kConflict, "cancelled while the code was copied");
  }
  return {};
}

Fd FolderBuilder::Open(const CodeEntry& entry, int flags) const {
  const mode_t mode = entry.kind == EntryKind::kExecutable ? 0700 : 0600;
  return Fd(openat(fd_.Get(), entry.path.c_str(), O_WRONLY | O_CLOEXEC | flags, mode));
}

tl::unexpected<Error> FolderBuilder::Damaged(const CodeEntry& entry, const Digest& chunk,
                                             std::string_view how) const {
  tree_.NoteDamage(chunk);
  return Fail(ErrorCode::kCorrupt,
              StrCat("the captured code cannot be copied: chunk '", chunk.Hex(), "' of '", entry.path,
                     "' is damaged: ", how),
              "submit again from the folder of the code: what is damaged is then stored anew");
}

tl::unexpected<Error> FolderBuilder::WriteError(const CodeEntry& entry) const {
  return Fail(
      ErrnoError(errno, StrCat("cannot make '", path_, entry.path.empty() ? "" : "/", entry.path, "'")));
}

}  // namespace overcap
