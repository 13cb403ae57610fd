// SPDX-License-Identifier: Apache-2.0
#include "stores/file/partial_upload.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

std::string FirstDigits(const std::string& identity) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(identity.data()), identity.size(), digest);
  char text[17];
  for (int i = 0; i < 8; ++i) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return text;
}

std::string CrcText(std::string_view bytes) {
  char text[9];
  snprintf(text, sizeof text, "%08x", Crc32c(bytes));
  return text;
}

std::string HeadLine(int64_t size) {
  return StrCat("overcap part 1 ", size, " ", kFilePartSize, "\n");
}

// What is there of [offset, offset + size); shorter at the end of the file or after an error.
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

}  // namespace

Result<std::unique_ptr<PartialUpload>> PartialUpload::Start(FileUploadTarget target,
                                                            const std::string& identity) {
  if (target.size < 0)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(target.key, 200), " cannot have ", target.size, " bytes"));
  std::unique_ptr<PartialUpload> upload(new PartialUpload(std::move(target)));
  upload->missing_ = PartCount(upload->target_.size, kFilePartSize);
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
  partial_ = StrCat(folder, kPartialBegin, FirstDigits(identity));
  journal_ = partial_ + ".done";
  const auto open = [&](const std::string& path, mode_t mode) {
    return OpenBelow(root, path, O_RDWR | O_CREAT | O_NOFOLLOW, mode);
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
  return TakeSpace(fd_.Get(), target_.size);
}

// Takes what it says, as far as the file has it; a journal of something else is begun anew.
int PartialUpload::ReadJournal() {
  const auto most = static_cast<int64_t>(written_.size() + 2) * 32 + 64;
  std::string text;
  ReadPart(journal_fd_.Get(), 0, most, &text);
  const std::string head = HeadLine(target_.size);
  if (!text.starts_with(head)) return BeginJournal();
  std::string buffer;
  std::string_view rest = std::string_view(text).substr(head.size());
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    if (!TakeLine(rest.substr(0, end), &buffer)) break;
    rest.remove_prefix(end + 1);
  }
  // Lines are added at the end: what is not a line must not stand before them.
  if (ftruncate(journal_fd_.Get(), static_cast<off_t>(text.size() - rest.size())) != 0) return errno;
  return lseek(journal_fd_.Get(), 0, SEEK_END) < 0 ? errno : 0;
}

bool PartialUpload::TakeLine(std::string_view line, std::string* buffer) {
  const size_t blank = line.find(' ');
  const auto index = ParseInt(line.substr(0, blank));
  if (blank == std::string_view::npos || !index || *index < 0 ||
      *index >= static_cast<long long>(written_.size()))
    return false;
  const int64_t size = std::min<int64_t>(kFilePartSize, target_.size - *index * kFilePartSize);
  ReadPart(fd_.Get(), *index * kFilePartSize, size, buffer);
  if (static_cast<int64_t>(buffer->size()) != size || CrcText(*buffer) != line.substr(blank + 1)) return true;
  if (!written_[static_cast<size_t>(*index)]) --missing_;
  written_[static_cast<size_t>(*index)] = true;
  return true;
}

int PartialUpload::BeginJournal() {
  if (ftruncate(journal_fd_.Get(), 0) != 0 || lseek(journal_fd_.Get(), 0, SEEK_SET) < 0) return errno;
  if (ftruncate(fd_.Get(), 0) != 0) return errno;
  return WriteAll(journal_fd_.Get(), HeadLine(target_.size));
}

PartialUpload::~PartialUpload() {
  if (finished_ || !spoilt_ || partial_.empty()) return;
  unlinkat(target_.root->Get(), partial_.c_str(), 0);
  unlinkat(target_.root->Get(), journal_.c_str(), 0);
}

int PartialUpload::WritePart(int64_t index, std::string_view bytes) {
  const std::lock_guard lock(writing_);
  return WriteAt(fd_.Get(), index * kFilePartSize, bytes);
}

Result<void> PartialUpload::Part(int64_t index, std::string_view bytes) {
  OC_TRY_VOID(ValidPart(target_.key, target_.size, kFilePartSize, index, bytes.size()));
  if (const int error = WritePart(index, bytes); error != 0) return Failed(error);
  const std::string line = StrCat(index, " ", CrcText(bytes), "\n");
  const std::lock_guard lock(mutex_);
  if (!written_[static_cast<size_t>(index)]) --missing_;
  written_[static_cast<size_t>(index)] = true;
  (void)WriteAll(journal_fd_.Get(), line);  // without it the part only travels again
  return {};
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
