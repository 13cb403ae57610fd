// SPDX-License-Identifier: Apache-2.0
#include "stores/file/partial_upload.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/object_size.h"
#include "sys/fresh_open.h"
#include "sys/posix_files.h"

namespace overcap {
Result<std::unique_ptr<PartialUpload>> PartialUpload::Start(FileUploadTarget target,
                                                            const std::string& identity) {
  OC_TRY_VOID(CheckObjectSize(target.key, target.size));
  std::unique_ptr<PartialUpload> upload(new PartialUpload(std::move(target)));
  upload->missing_ = PartCount(upload->target_.size, upload->target_.part_size);
  upload->written_.resize(static_cast<size_t>(upload->missing_));
  bool busy = false;
  const int error = upload->Open(identity, &busy);
  if (error != 0) return upload->Failed(error);
  if (busy) {
    upload->partial_.clear();
    return nullptr;
  }
  return upload;
}

int PartialUpload::Open(const std::string& identity, bool* busy) {
  const int root = target_.root->Get();
  const std::string folder = target_.key.substr(0, target_.key.rfind('/') + 1);
  partial_ = folder + PartialName(identity);
  journal_ = partial_ + ".done";
  const auto open = [&](const std::string& path, mode_t mode) {
    return OpenRetrying(root, path, O_RDWR | O_CREAT | O_NOFOLLOW, mode);
  };
  journal_fd_ = open(journal_, 0600);
  if (!journal_fd_ && errno == ENOENT && !folder.empty()) {
    if (const int error = MakeFoldersBelow(root, folder, target_.manner); error != 0) return error;
    journal_fd_ = open(journal_, 0600);
  }
  if (!journal_fd_) return errno;
  if (flock(journal_fd_.Get(), LOCK_EX | LOCK_NB) != 0) {
    *busy = true;
    return 0;
  }
  fd_ = open(partial_, target_.manner.private_files ? 0600 : 0666);
  if (!fd_) return errno;
  if (const int error = ReadJournal(); error != 0) return error;
  writer_.Begin(fd_.Get(), root, partial_);
  return TakeSpace(fd_.Get(), target_.size);
}

// Takes what it says, as far as the file has it; a journal of something else is begun anew.
int PartialUpload::ReadJournal() {
  const PartJournal journal = Journal();
  std::string text, buffer;
  ReadPart(journal_fd_.Get(), 0, journal.MostBytes(), &text);
  size_t good = 0;
  const std::vector<PartJournal::Line> lines = journal.Parse(text, &good);
  if (good == 0) return BeginJournal();
  for (const PartJournal::Line& line : lines) {
    ReadPart(fd_.Get(), line.part * target_.part_size, journal.BytesOf(line.part), &buffer);
    if (static_cast<int64_t>(buffer.size()) != journal.BytesOf(line.part) ||
        PartJournal::CrcText(buffer) != line.crc)
      continue;
    if (!written_[static_cast<size_t>(line.part)]) --missing_;
    written_[static_cast<size_t>(line.part)] = true;
  }
  // Lines are added at the end: what is not a line must not stand before them.
  if (ftruncate(journal_fd_.Get(), static_cast<off_t>(good)) != 0) return errno;
  return lseek(journal_fd_.Get(), 0, SEEK_END) < 0 ? errno : 0;
}

int PartialUpload::BeginJournal() {
  if (ftruncate(journal_fd_.Get(), 0) != 0 || lseek(journal_fd_.Get(), 0, SEEK_SET) < 0) return errno;
  if (ftruncate(fd_.Get(), 0) != 0) return errno;
  return WriteAll(journal_fd_.Get(), Journal().Head());
}

PartialUpload::~PartialUpload() {
  if (finished_ || !spoilt_ || partial_.empty()) return;
  unlinkat(target_.root->Get(), partial_.c_str(), 0);
  unlinkat(target_.root->Get(), journal_.c_str(), 0);
}

Result<void> PartialUpload::Part(int64_t index, std::string_view bytes) {
  OC_TRY_VOID(ValidPart(target_.key, target_.size, target_.part_size, index, bytes.size()));
  if (const int error = writer_.Write(index * target_.part_size, bytes); error != 0) return Failed(error);
  const std::string line = PartJournal::LineOf(index, bytes);
  const std::lock_guard lock(mutex_);
  if (!written_[static_cast<size_t>(index)]) --missing_;
  written_[static_cast<size_t>(index)] = true;
  (void)WriteAll(journal_fd_.Get(), line);  // without it the part only travels again
  return {};
}

Result<void> PartialUpload::ReadBack(int64_t offset, int64_t bytes, std::string* out) const {
  ReadPart(fd_.Get(), offset, bytes, out);
  return {};
}

void PartialUpload::Discard() {
  const std::lock_guard lock(mutex_);
  spoilt_ = true;
}

bool PartialUpload::Has(int64_t index) const {
  const std::lock_guard lock(mutex_);
  return index >= 0 && index < static_cast<int64_t>(written_.size()) && written_[static_cast<size_t>(index)];
}

Result<void> PartialUpload::Finish() {
  {
    const std::lock_guard lock(mutex_);
    if (missing_ > 0 || finished_)
      return Fail(ErrorCode::kUsage,
                  StrCat(missing_, " parts of ", Quoted(target_.key, 200), " are missing"));
    finished_ = true;
  }
  const int root = target_.root->Get();
  const int error = PlaceObjectFile(root, target_.key, partial_, fd_.Get(), target_.mode, target_.manner);
  unlinkat(root, journal_.c_str(), 0);
  journal_fd_ = Fd();  // over NFS what is open keeps a name until it is closed
  if (error != 0) return Fail(UploadError(error, target_));
  return {};
}

// A disk that is full shall not stay so because of what nobody can use.
tl::unexpected<Error> PartialUpload::Failed(int error) {
  const std::lock_guard lock(mutex_);
  spoilt_ = true;
  return Fail(UploadError(error, target_));
}

}  // namespace overcap
