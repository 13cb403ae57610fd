// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/pipe_stores.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/sha256.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kPart = 4 << 20;
constexpr size_t kReadAtOnce = 1 << 20;

class OutputUpload : public StoreUpload {
 public:
  OutputUpload(OutputStore* out, int64_t size, int64_t part_size)
      : out_(out), size_(size), part_size_(part_size) {}

  int64_t PartSize() const override { return part_size_; }
  Result<void> Part(int64_t index, std::string_view bytes) override {
    OC_TRY_VOID(ValidPart(PipeStore::kKey, size_, part_size_, index, bytes.size()));
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return next_ == index || given_up_; });
    if (given_up_) return Fail(ErrorCode::kConflict, "stopped");
    lock.unlock();
    Result<void> written = out_->Write(bytes);
    lock.lock();
    ++next_;
    turn_.notify_all();
    return written;
  }
  void GiveUp() override {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    turn_.notify_all();
  }
  Result<void> Finish() override { return {}; }

 private:
  OutputStore* const out_;
  const int64_t size_, part_size_;
  std::mutex mutex_;  // guards all below
  std::condition_variable turn_;
  int64_t next_ = 0;
  bool given_up_ = false;
};

// A file that is gone with whoever has it open.
Result<Fd> NamelessFile(const std::string& folder) {
  Fd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string path = StrCat(folder, "/overcap-stdin-XXXXXX");  // a file system that has no such
  file = Fd(mkostemp(path.data(), O_CLOEXEC));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot make a file in ", Quoted(folder, 300))));
  (void)unlink(path.c_str());
  return file;
}

ssize_t ReadSome(int fd, std::string* buffer) {
  ssize_t got;
  do {
    got = read(fd, buffer->data(), buffer->size());
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

tl::unexpected<Error> PipeStore::Refused() const {
  return Fail(ErrorCode::kUsage, StrCat(Location(), " is no store: it can only be copied from or to"));
}

Result<void> PipeStore::Put(const std::string&, std::span<const std::string_view>, PutMode) {
  return Refused();
}

Result<void> PipeStore::GetIntoIf(const StoredObjectInfo&, int64_t, int64_t, std::string*) const {
  return Refused();
}

Result<StoredObjectInfo> PipeStore::Stat(const std::string&) const {
  return Fail(ErrorCode::kNotFound, StrCat("there is nothing in ", Location()));
}

Result<StorePage> PipeStore::List(const std::string&, const std::string&) const {
  return Refused();
}

Result<void> PipeStore::Remove(const std::string&) {
  return Refused();
}

Result<int64_t> PipeStore::CleanUp(int64_t) {
  return Refused();
}

Result<void> OutputStore::Write(std::string_view bytes) {
  if (const int error = WriteAll(fd_, bytes); error != 0)
    return Fail(ErrnoError(error, "cannot write to stdout"));
  return {};
}

Result<void> OutputStore::Put(const std::string&, std::span<const std::string_view> pieces, PutMode) {
  for (const std::string_view piece : pieces) OC_TRY_VOID(Write(piece));
  return {};
}

Result<std::unique_ptr<StoreUpload>> OutputStore::ResumeUpload(const std::string&, int64_t size, PutMode,
                                                               const std::string&, int64_t part_size) {
  return std::make_unique<OutputUpload>(this, size, part_size > 0 ? part_size : kPart);
}

Result<std::unique_ptr<InputStore>> InputStore::ReadAll(int fd, const std::string& folder,
                                                        const std::function<void(int64_t bytes)>& progress) {
  OC_TRY(file, NamelessFile(folder));
  StoredObjectInfo info{std::string(kKey)};
  Sha256 sum;
  std::string buffer(kReadAtOnce, '\0');
  while (true) {
    const ssize_t got = ReadSome(fd, &buffer);
    if (got < 0) return Fail(ErrnoError(errno, "cannot read stdin"));
    if (got == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    if (const int error = WriteAll(file.Get(), bytes); error != 0) {
      Error failed = ErrnoError(error, StrCat("cannot keep what comes from stdin in ", Quoted(folder, 300)));
      failed.hint = "it is kept there until it is copied; TMPDIR names another folder, with more space";
      return Fail(std::move(failed));
    }
    sum.Update(bytes.data(), bytes.size());
    info.size += got;
    progress(info.size);
  }
  struct stat kept {};
  if (fstat(file.Get(), &kept) != 0) return Fail(ErrnoError(errno, "cannot keep what comes from stdin"));
  info.modified_us = kept.st_mtim.tv_sec * 1'000'000LL + kept.st_mtim.tv_nsec / 1000;
  info.version = sum.Finish().Hex();
  return std::unique_ptr<InputStore>(new InputStore(std::move(file), std::move(info)));
}

Result<void> InputStore::GetIntoIf(const StoredObjectInfo&, int64_t offset, int64_t limit,
                                   std::string* out) const {
  out->resize(static_cast<size_t>(std::clamp<int64_t>(info_.size - offset, 0, limit)));
  for (size_t done = 0; done < out->size();) {
    const ssize_t got = pread(file_.Get(), out->data() + done, out->size() - done,
                              static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Fail(ErrnoError(got == 0 ? EIO : errno, "cannot read again what came from stdin"));
    done += static_cast<size_t>(got);
  }
  return {};
}

Result<StoredObjectInfo> InputStore::Stat(const std::string&) const {
  return info_;
}

}  // namespace overcap
