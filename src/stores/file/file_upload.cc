// SPDX-License-Identifier: Apache-2.0
#include "stores/file/file_upload.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/file/file_errors.h"

namespace overcap {

int WriteAt(int fd, int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return 0;
}

int TakeSpace(int fd, int64_t size) {
  if (size == 0 || fallocate(fd, 0, 0, size) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

Result<std::unique_ptr<FileUpload>> FileUpload::Start(Target target) {
  if (target.size < 0)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(target.key, 200), " cannot have ", target.size, " bytes"));
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
  upload->missing_ = PartCount(to.size, kFilePartSize);
  upload->written_.resize(static_cast<size_t>(upload->missing_));
  return upload;
}

FileUpload::~FileUpload() {
  if (!temporary_.empty()) unlinkat(target_.root->Get(), temporary_.c_str(), 0);
}

int64_t FileUpload::PartSize() const {
  return kFilePartSize;
}

int FileUpload::WritePart(int64_t index, std::string_view bytes) {
  const std::lock_guard lock(writing_);
  return WriteAt(fd_.Get(), index * kFilePartSize, bytes);
}

Result<void> FileUpload::Part(int64_t index, std::string_view bytes) {
  OC_TRY_VOID(ValidPart(target_.key, target_.size, kFilePartSize, index, bytes.size()));
  if (const int error = WritePart(index, bytes); error != 0) return Failed(error);
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
