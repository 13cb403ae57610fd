// SPDX-License-Identifier: Apache-2.0
#include "stores/file/file_upload.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/file/file_errors.h"
#include "stores/object_size.h"

namespace overcap {

int TakeSpace(int fd, int64_t size) {
  if (size == 0 || fallocate(fd, 0, 0, size) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

void ReadPart(int fd, int64_t offset, int64_t size, std::string* out) {
  out->resize(static_cast<size_t>(size));
  size_t filled = 0;
  while (filled < out->size()) {
    const ssize_t n =
        pread(fd, out->data() + filled, out->size() - filled, offset + static_cast<int64_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filled += static_cast<size_t>(n);
  }
  out->resize(filled);
}

Result<std::unique_ptr<FileUpload>> FileUpload::Start(Target target) {
  OC_TRY_VOID(CheckObjectSize(target.key, target.size));
  std::unique_ptr<FileUpload> upload(new FileUpload(std::move(target)));
  const Target& to = upload->target_;
  struct stat there {};
  if (to.mode == PutMode::kCreate &&
      fstatat(to.root->Get(), to.key.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0)
    return upload->Failed(EEXIST);
  int error = OpenObjectFile(to.root->Get(), to.key, to.manner, &upload->temporary_, &upload->fd_);
  if (error != 0) upload->temporary_.clear();
  if (error == 0) error = TakeSpace(upload->fd_.Get(), to.size);
  if (error != 0) return upload->Failed(error);
  upload->writer_.Begin(upload->fd_.Get(), to.root->Get(), upload->temporary_);
  upload->missing_ = PartCount(to.size, to.part_size);
  upload->written_.resize(static_cast<size_t>(upload->missing_));
  return upload;
}

FileUpload::~FileUpload() {
  if (!temporary_.empty()) unlinkat(target_.root->Get(), temporary_.c_str(), 0);
}

Result<void> FileUpload::ReadBack(int64_t offset, int64_t bytes, std::string* out) const {
  ReadPart(fd_.Get(), offset, bytes, out);
  return {};
}

Result<void> FileUpload::Part(int64_t index, std::string_view bytes) {
  OC_TRY_VOID(ValidPart(target_.key, target_.size, target_.part_size, index, bytes.size()));
  if (const int error = writer_.Write(index * target_.part_size, bytes); error != 0) return Failed(error);
  const std::lock_guard lock(mutex_);
  if (!written_[static_cast<size_t>(index)]) --missing_;
  written_[static_cast<size_t>(index)] = true;
  return {};
}

Result<void> FileUpload::Finish() {
  const std::lock_guard lock(mutex_);
  if (missing_ > 0 || temporary_.empty())
    return Fail(ErrorCode::kUsage, StrCat(missing_, " parts of ", Quoted(target_.key, 200), " are missing"));
  const std::string temporary = std::exchange(temporary_, "");
  const int error =
      PlaceObjectFile(target_.root->Get(), target_.key, temporary, fd_.Get(), target_.mode, target_.manner);
  if (error != 0) return Failed(error);
  return {};
}

Error UploadError(int error, const FileUploadTarget& target) {
  if (error == EEXIST && target.mode == PutMode::kCreate)
    return {ErrorCode::kConflict,
            StrCat("there is a ", Quoted(target.key, 200), " in store ", Quoted(target.location, 500),
                   " already"),
            ""};
  return FileStoreError(error, "write", target.key, target.location);
}

}  // namespace overcap
