// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_import.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_writer.h"
#include "snapshot/tar/import_chunks.h"
#include "snapshot/tar/tar_reader.h"
#include "snapshot/tar/tar_tree.h"

namespace overcap {
namespace {

constexpr int64_t kTellUs = 100'000, kHoleLeast = 4096;
constexpr size_t kEntriesMost = 20'000'000;

// What a snapshot keeps of its own folder is not part of it.
bool IsOwn(std::string_view path) {
  return path == ".overcap" || path.starts_with(".overcap/");
}

class Importer {
 public:
  Importer(const Repository& repository, const TarImportRequest& request, ChunkWriter& writer)
      : repository_(repository),
        request_(request),
        writer_(writer),
        began_us_(repository.clock().WallUs()),
        tree_({request.uid, request.gid, began_us_ * 1000}),
        chunks_(writer, repository.config().chunks, std::clamp(request.threads, 1, 8)) {}

  Result<TarImportReport> Run(ByteSource& source) {
    TarReader reader(source, request_.name);
    TarItem item;
    while (true) {
      OC_TRY(more, reader.Next(&item));
      if (!more) break;
      if (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed))
        return Fail(ErrorCode::kConflict, "the import was stopped");
      OC_TRY_VOID(Take(reader, &item));
      Tell();
    }
    OC_TRY_VOID(chunks_.Finish());
    return Commit();
  }

 private:
  tl::unexpected<Error> Refused(const Error& error) const {
    return Fail(error.code, StrCat("tar '", request_.name, "': ", error.message), error.hint);
  }

  void Tell() {
    const int64_t now = repository_.clock().MonotonicUs();
    if (!request_.progress || now - told_us_ < kTellUs) return;
    told_us_ = now;
    request_.progress(progress_);
  }

  Result<void> Take(TarReader& reader, TarItem* item) {
    SnapshotEntry& entry = item->entry;
    if (!item->special.empty()) {
      ++report_.skipped;
      if (request_.skip_special) return {};
      return Refused({ErrorCode::kUsage, StrCat(Quoted(entry.path, 200), " is ", item->special),
                      "--skip-devices imports the rest"});
    }
    const bool folder = entry.type == SnapshotEntryType::kFolder;
    auto clean = CleanTarPath(entry.path, request_.strip, folder);
    if (!clean) return Refused(clean.error());
    if (clean->gone || IsOwn(clean->path)) {
      ++report_.skipped;
      return {};
    }
    if (entry.type == SnapshotEntryType::kHardLink) {
      auto target = CleanTarPath(entry.target, request_.strip, false);
      if (!target) return Refused(target.error());
      entry.target = std::move(target->path);
    }
    if (entry.type == SnapshotEntryType::kSymlink && entry.target.empty())
      return Refused(
          {ErrorCode::kCorrupt, StrCat("the link ", Quoted(entry.path, 200), " leads nowhere"), ""});
    if (tree_.size() >= kEntriesMost) return Refused({ErrorCode::kUsage, "it has too many entries", ""});
    entry.path = std::move(clean->path);
    const bool file = entry.type == SnapshotEntryType::kFile;
    const size_t number = tree_.Add(std::move(entry));
    contents_.push_back({chunks_.part_count(), 0});
    if (!file) return {};
    OC_TRY_VOID(TakeData(reader, *item, tree_.entry(number).size));
    contents_[number].count = chunks_.part_count() - contents_[number].first;
    ++progress_.files_done;
    return {};
  }

  Result<void> TakeData(TarReader& reader, const TarItem& item, int64_t size) {
    if (size == 0) return {};
    const std::vector<TarRun> whole = {{0, size}};
    const std::vector<TarRun>& runs = item.sparse ? item.runs : whole;
    int64_t at = 0;
    for (size_t i = 0; i < runs.size();) {
      // Runs that are hardly apart are one, with zeros between.
      size_t last = i;
      const auto end = [&](size_t run) { return runs[run].offset + runs[run].length; };
      while (last + 1 < runs.size() && runs[last + 1].offset - end(last) < kHoleLeast) ++last;
      const bool from_hole = runs[i].offset - at < kHoleLeast;
      const int64_t begin = from_hole ? at : runs[i].offset;
      const bool to_end = size - end(last) < kHoleLeast;
      const int64_t stop = to_end && last + 1 == runs.size() ? size : end(last);
      if (begin > at) chunks_.Hole(begin - at);
      chunks_.BeginRun(stop - begin);
      at = begin;
      for (; i <= last; ++i) {
        OC_TRY_VOID(Zeros(runs[i].offset - at));
        OC_TRY_VOID(Copy(reader, runs[i].length));
        at = end(i);
      }
      OC_TRY_VOID(Zeros(stop - at));
      at = stop;
    }
    if (at < size) chunks_.Hole(size - at);
    return {};
  }

  Result<void> Zeros(int64_t count) {
    const std::string zeros(static_cast<size_t>(count), '\0');  // less than kHoleLeast
    return chunks_.Data(zeros);
  }

  // Pieces may reach over several runs.
  Result<void> Copy(TarReader& reader, int64_t count) {
    while (count > 0) {
      if (rest_.empty()) {
        OC_TRY(piece, reader.Data());
        if (piece.empty()) return Fail(ErrorCode::kInternal, "a tar has less data than its reader says");
        rest_ = piece;
        progress_.bytes_done += static_cast<int64_t>(piece.size());
        Tell();
      }
      const std::string_view part =
          rest_.substr(0, static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(rest_.size()))));
      OC_TRY_VOID(chunks_.Data(part));
      rest_.remove_prefix(part.size());
      count -= static_cast<int64_t>(part.size());
    }
    return {};
  }

  Result<FileContent> ContentOf(size_t number, const PutMeta& put) const {
    const auto [first, count] = contents_[number];
    FileContent content;
    if (count == 0) return content;
    if (count == 1 && chunks_.part(first).kind == ContentPart::Kind::kChunk) {
      content = {FileContent::Kind::kChunk, chunks_.part(first).id};
      return content;
    }
    std::vector<ContentPart> parts;
    parts.reserve(count);
    for (size_t i = first; i < first + count; ++i) parts.push_back(chunks_.part(i));
    OC_TRY(id, WriteContentMaps(parts, put));
    content = {FileContent::Kind::kMap, id};
    return content;
  }

  Result<TarImportReport> Commit() {
    const auto lane = writer_.NewLane();
    const PutMeta put = [&](std::string_view bytes) -> Result<Digest> {
      OC_TRY(added, lane->Add(ChunkKind::kMeta, bytes));
      return added.id;
    };
    if (const auto resolved = tree_.Resolve(); !resolved) return Refused(resolved.error());
    for (size_t number = 0; number < tree_.size(); ++number) {
      if (!tree_.Needed(number)) continue;
      OC_TRY(content, ContentOf(number, put));
      tree_.entry(number).content = content;
    }
    TreeBuilder builder(put);
    // Errors of the builder are not the tar's.
    bool of_builder = false;
    const auto visited = tree_.Visit([&](const SnapshotEntry& entry) {
      auto added = builder.Add(entry);
      of_builder = !added;
      return added;
    });
    if (!visited && !of_builder) return Refused(visited.error());
    if (!visited) return Fail(visited.error());
    OC_TRY(tree, builder.Finish());
    OC_TRY_VOID(lane->Flush());
    SnapshotRecord record;
    record.tree = tree;
    record.workspace = request_.workspace;
    record.host = request_.host;
    record.folder = request_.folder;
    record.user = request_.user;
    record.message = request_.message;
    OC_TRY(before, repository_.Snapshots(request_.workspace));
    if (!before.empty()) record.parent = before.back().Id();
    SetTimes(&record, began_us_, before.empty() ? 0 : before.back().record.time_us);
    record.entries = builder.totals().entries;
    record.files = builder.totals().files;
    record.bytes = builder.totals().bytes;
    record.program = OVERCAP_VERSION;
    OC_TRY(snapshot, writer_.Commit(record));
    report_.new_bytes = snapshot.record.new_bytes;
    report_.stored_bytes = snapshot.record.stored_bytes;
    report_.snapshot = std::move(snapshot);
    return report_;
  }

  struct PartRange {
    size_t first, count;
  };

  const Repository& repository_;
  const TarImportRequest& request_;
  ChunkWriter& writer_;
  const int64_t began_us_;
  TarTree tree_;
  std::vector<PartRange> contents_;  // beside the entries of tree_
  ImportChunks chunks_;
  std::string_view rest_;  // of the reader's last piece
  TarProgress progress_;
  TarImportReport report_;
  int64_t told_us_ = 0;
};

}  // namespace

Result<TarImportReport> ImportTar(const Repository& repository, ByteSource& source,
                                  const TarImportRequest& request) {
  OC_TRY_VOID(ValidWorkspaceName(request.workspace));
  OC_TRY(plain, Decompress(source, request.name));
  OC_TRY(writer, ChunkWriter::Start(repository));
  Importer importer(repository, request, *writer);
  return importer.Run(*plain);
}

}  // namespace overcap
