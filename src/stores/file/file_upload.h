// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/file/object_file.h"
#include "stores/file/part_writer.h"
#include "stores/store.h"
#include "sys/fd.h"

namespace overcap {

constexpr int64_t kFilePartSize = 8 << 20;

struct FileUploadTarget {
  std::string location;  // of the store, for messages
  std::shared_ptr<const Fd> root;
  std::string key;
  int64_t size = 0;
  PutMode mode = PutMode::kReplace;
  FilePutManner manner;
  int64_t part_size = kFilePartSize;
};

// What an errno means for who writes that object.
Error UploadError(int error, const FileUploadTarget& target);

// A large object on its way into a folder: a temporary that parts are written into, each where it belongs.
class FileUpload : public StoreUpload {
 public:
  using Target = FileUploadTarget;
  // Takes the space first, so that a full disk is told before anything travels.
  static Result<std::unique_ptr<FileUpload>> Start(Target target);
  ~FileUpload() override;

  int64_t PartSize() const override { return target_.part_size; }
  Result<void> Part(int64_t index, std::string_view bytes) override;
  Result<void> ReadBack(int64_t offset, int64_t bytes, std::string* out) const override;
  bool CanReadBack() const override { return true; }
  Result<void> Finish() override;

 private:
  explicit FileUpload(Target target) : target_(std::move(target)) {}
  tl::unexpected<Error> Failed(int error) const { return Fail(UploadError(error, target_)); }

  const Target target_;
  std::string temporary_;  // "" once it is the object, or gone
  Fd fd_;
  PartWriter writer_;
  std::mutex mutex_;  // guards all below
  std::vector<bool> written_;
  int64_t missing_ = 0;  // parts
};

// Takes the space for a file of that size, where the file system can; a full one says so: 0 or an errno.
int TakeSpace(int fd, int64_t size);
// What is there of [offset, offset + size); shorter at the end of the file or after an error.
void ReadPart(int fd, int64_t offset, int64_t size, std::string* out);

}  // namespace overcap
