// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_export.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/tar/background_sink.h"
#include "snapshot/tar/tar_writer.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr int64_t kTellUs = 100'000;

// Compresses into `next` and finishes both.
class CompressingSink : public ByteSink {
 public:
  static Result<std::unique_ptr<CompressingSink>> Make(ByteSink& next, TarCodec codec, int threads) {
    OC_TRY(inner, CompressInto(next, codec, threads));
    return std::unique_ptr<CompressingSink>(new CompressingSink(next, std::move(inner)));
  }
  Result<void> Write(std::string_view bytes) override { return inner_->Write(bytes); }
  Result<void> Finish() override {
    OC_TRY_VOID(inner_->Finish());
    return next_.Finish();
  }

 private:
  CompressingSink(ByteSink& next, std::unique_ptr<ByteSink> inner) : next_(next), inner_(std::move(inner)) {}
  ByteSink& next_;
  std::unique_ptr<ByteSink> inner_;
};

class Exporter {
 public:
  Exporter(const Repository& repository, const ChunkIndex& index, const TarExportRequest& request,
           ByteSink& sink)
      : reader_(repository, index), clock_(repository.clock()), request_(request), writer_(sink) {}

  Result<TarExportReport> Run() {
    TreeReader tree(request_.tree, Getter());
    OC_TRY(totals, tree.Totals());
    progress_.files_total = totals.files;
    progress_.bytes_total = totals.bytes;
    while (true) {
      OC_TRY(entry, tree.Next());
      if (entry == nullptr) break;
      if (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed))
        return Fail(ErrorCode::kConflict, "the export was stopped");
      OC_TRY_VOID(Add(*entry));
      ++report_.entries;
      Tell();
    }
    OC_TRY_VOID(writer_.Finish());
    report_.files = progress_.files_done;
    report_.bytes = progress_.bytes_done;
    return report_;
  }

 private:
  GetMeta Getter() {
    return [this](const Digest& id) { return reader_.Get(id); };
  }

  void Tell() {
    const int64_t now = clock_.MonotonicUs();
    if (!request_.progress || now - told_us_ < kTellUs) return;
    told_us_ = now;
    request_.progress(progress_);
  }

  Result<void> Add(const SnapshotEntry& entry) {
    TarItem item;
    item.entry = entry;
    if (entry.type != SnapshotEntryType::kFile) return writer_.Begin(item);
    OC_TRY(parts, PartsOf(entry));
    int64_t offset = 0;
    for (const ContentPart& part : parts) {
      const bool hole = part.kind == ContentPart::Kind::kHole;
      item.sparse = item.sparse || hole;
      if (!hole && !item.runs.empty() && item.runs.back().offset + item.runs.back().length == offset) {
        item.runs.back().length += part.length;
      } else if (!hole) {
        item.runs.push_back({offset, part.length});
      }
      offset += part.length;
    }
    // More runs than readers take: the holes are written out.
    const bool spell_out = item.runs.size() >= kTarRunsMost;
    if (!item.sparse || spell_out) item.runs.clear();
    item.sparse = item.sparse && !spell_out;
    OC_TRY_VOID(writer_.Begin(item));
    for (const ContentPart& part : parts) OC_TRY_VOID(AddPart(entry, part, item.sparse));
    ++progress_.files_done;
    return {};
  }

  Result<std::vector<ContentPart>> PartsOf(const SnapshotEntry& entry) {
    if (entry.content.kind == FileContent::Kind::kEmpty) return std::vector<ContentPart>();
    if (entry.content.kind == FileContent::Kind::kChunk) {
      return std::vector<ContentPart>{{ContentPart::Kind::kChunk, entry.size, entry.content.id}};
    }
    auto parts = ReadContentMaps(entry.content.id, entry.size, Getter());
    if (!parts) return Damaged(entry, parts.error());
    return parts;
  }

  Result<void> AddPart(const SnapshotEntry& entry, const ContentPart& part, bool sparse) {
    if (part.kind == ContentPart::Kind::kHole) {
      if (!sparse) OC_TRY_VOID(AddZeros(part.length));
    } else {
      auto bytes = reader_.Get(part.id);
      if (!bytes) return Damaged(entry, bytes.error());
      if (static_cast<int64_t>(bytes->size()) != part.length) {
        return Damaged(entry, {ErrorCode::kCorrupt, "a chunk has another size", ""});
      }
      OC_TRY_VOID(writer_.Data(*bytes));
    }
    progress_.bytes_done += part.length;
    Tell();
    return {};
  }

  Result<void> AddZeros(int64_t length) {
    static const std::string zeros(256 << 10, '\0');
    for (; length > 0; length -= static_cast<int64_t>(zeros.size())) {
      OC_TRY_VOID(writer_.Data(std::string_view(zeros).substr(0, static_cast<size_t>(length))));
    }
    return {};
  }

  tl::unexpected<Error> Damaged(const SnapshotEntry& entry, const Error& error) const {
    return Fail(error.code,
                StrCat("cannot read the content of ", Quoted(entry.path, 200), ": ", error.message),
                error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kNotFound
                    ? "'overcap workspace verify' tells all that is damaged"
                    : error.hint);
  }

  ChunkReader reader_;
  const Clock& clock_;
  const TarExportRequest& request_;
  TarWriter writer_;
  TarProgress progress_;
  TarExportReport report_;
  int64_t told_us_ = 0;
};

// A file that is renamed to its name when it is whole, and else removed.
class NewFile {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)), temporary_(StrCat(path_, ".", getpid(), ".part")) {}
  ~NewFile() {
    if (fd_) unlink(temporary_.c_str());
  }
  Result<void> Open() {
    fd_ = Fd(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd_) return Fail(ErrnoError(errno, StrCat("cannot make '", temporary_, "'")));
    return {};
  }
  int fd() const { return fd_.Get(); }
  Result<void> Keep(bool replace) {
    if (fsync(fd_.Get()) != 0) return Fail(ErrnoError(errno, StrCat("cannot write '", path_, "'")));
    const bool done = replace ? rename(temporary_.c_str(), path_.c_str()) == 0
                              : RenameNew(AT_FDCWD, temporary_, AT_FDCWD, path_);
    if (!done && errno == EEXIST) return Fail(ErrorCode::kConflict, StrCat("'", path_, "' is there already"));
    if (!done) return Fail(ErrnoError(errno, StrCat("cannot make '", path_, "'")));
    fd_.Reset();
    return {};
  }

 private:
  const std::string path_, temporary_;
  Fd fd_;
};

}  // namespace

Result<TarExportReport> ExportTar(const Repository& repository, const TarExportRequest& request,
                                  ByteSink& sink) {
  OC_TRY(index, ChunkIndex::Load(repository));
  OC_TRY(compressing, CompressingSink::Make(sink, request.codec, request.threads));
  BackgroundSink background(*compressing);
  Exporter exporter(repository, index, request, background);
  OC_TRY(report, exporter.Run());
  OC_TRY_VOID(background.Finish());
  return report;
}

Result<TarExportReport> ExportTarFile(const Repository& repository, const TarExportRequest& request,
                                      const std::string& path, bool replace, int64_t* size) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return Fail(ErrorCode::kConflict, StrCat("'", path, "' is a device, a pipe or a socket"),
                "'--tar -' writes to stdout");
  const bool there = lstat(path.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode)) return Fail(ErrorCode::kConflict, StrCat("'", path, "' is a folder"));
  if (there && !replace) {
    return Fail(ErrorCode::kConflict, StrCat("'", path, "' is there already"), "--force replaces it");
  }
  NewFile file(path);
  OC_TRY_VOID(file.Open());
  FdSink sink(file.fd(), path);
  OC_TRY(report, ExportTar(repository, request, sink));
  OC_TRY_VOID(file.Keep(replace));
  *size += sink.bytes();
  return report;
}

}  // namespace overcap
