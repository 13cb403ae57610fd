// SPDX-License-Identifier: Apache-2.0
#include "snapshot/code_writer.h"

#include <algorithm>

#include "snapshot/format/tree_pages.h"

namespace overcap {

// Holes are read as zeros: the same code has the same tree however its file system keeps it.
Result<CodeContent> ReadCode(int fd, int64_t size, const ChunkSizes& sizes, SegmentReader* reader,
                             ChunkSink* sink, std::string_view what,
                             const std::function<void(int64_t)>& on_bytes) {
  CodeContent read;
  std::vector<ContentPart> parts;
  const auto count = [&](int64_t bytes) {
    read.size += bytes;
    on_bytes(bytes);
    return true;
  };
  for (int64_t at = 0; at < size; at += sizes.segment) {
    const FileRun run{at, std::min(sizes.segment, size - at), false};
    OC_TRY(outcome, reader->Read(fd, run, &parts, count));
    if (outcome.error_number != 0) return Fail(ErrnoError(outcome.error_number, std::string(what)));
    if (outcome.cut_short) break;
  }
  OC_TRY(content, ContentOf(parts, sink));
  read.content = content;
  return read;
}

Result<std::unique_ptr<CodeWriter>> CodeWriter::Start(const Repository& repository) {
  OC_TRY(writer, ChunkWriter::Start(repository));
  return std::unique_ptr<CodeWriter>(new CodeWriter(repository, std::move(writer)));
}

Result<Digest> CodeWriter::Worker::Add(ChunkKind kind, std::string_view bytes) {
  OC_TRY(added, lane_->Add(kind, bytes));
  if (added.is_new && kind == ChunkKind::kData) new_bytes_ += static_cast<int64_t>(bytes.size());
  return added.id;
}

std::unique_ptr<CodeWriter::Worker> CodeWriter::TakeWorker() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Worker>(writer_->NewLane(), sizes_);
  std::unique_ptr<Worker> worker = std::move(idle_.back());
  idle_.pop_back();
  return worker;
}

void CodeWriter::GiveBack(std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

Result<CodeContent> CodeWriter::AddFile(int fd, int64_t size, std::string_view what,
                                        const std::function<void(int64_t)>& on_bytes) {
  std::unique_ptr<Worker> worker = TakeWorker();
  Result<CodeContent> read = ReadCode(fd, size, sizes_, &worker->reader(), worker.get(), what, on_bytes);
  const int64_t new_bytes = worker->TakeNewBytes();
  GiveBack(std::move(worker));
  new_bytes_ += new_bytes;
  new_files_ += new_bytes > 0 ? 1 : 0;
  return read;
}

Result<Digest> CodeWriter::Finish(const std::vector<CodeEntry>& entries) {
  std::unique_ptr<Worker> worker = TakeWorker();
  TreeBuilder tree([&](std::string_view bytes) { return worker->Add(ChunkKind::kMeta, bytes); });
  OC_TRY_VOID(tree.Add(ToTreeEntry(CodeEntry{"", EntryKind::kFolder, 0, {}, {}})));
  for (const CodeEntry& entry : entries) OC_TRY_VOID(tree.Add(ToTreeEntry(entry)));
  OC_TRY(id, tree.Finish());
  GiveBack(std::move(worker));
  for (const std::unique_ptr<Worker>& each : idle_) OC_TRY_VOID(each->Flush());
  OC_TRY_VOID(writer_->Pin(id));
  return id;
}

}  // namespace overcap
