// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_upload.h"

#include <algorithm>

#include "base/text.h"
#include "stores/object_size.h"

namespace overcap {
namespace {

constexpr int64_t kPartSize = 8 << 20;
// After so much the server is asked to have it on its disk; a killed upload has to send no more than that,
// and what was on its way, again.
constexpr int64_t kSyncedAfter = 32 << 20;
// To read all of it back would take as long as to send it again: what was on the disk when its line was
// written is believed when these, the last that were written, are right.
constexpr size_t kReadAgain = 4;

}  // namespace

SftpUpload::SftpUpload(const SftpStore& store, std::string key, int64_t size, PutMode mode)
    : store_(store), key_(std::move(key)), mode_(mode), journal_{size, kPartSize} {
  missing_ = PartCount(size, kPartSize);
  written_.resize(static_cast<size_t>(missing_));
}

Result<std::unique_ptr<SftpUpload>> SftpUpload::Start(const SftpStore& store, std::string key, int64_t size,
                                                      PutMode mode, const std::string& identity) {
  OC_TRY_VOID(CheckObjectSize(key, size));
  std::unique_ptr<SftpUpload> upload(new SftpUpload(store, std::move(key), size, mode));
  OC_TRY(session, store.Session());
  upload->session_ = session;
  const SftpFailure failure =
      identity.empty() ? store.OpenTemporary(*session, upload->key_, &upload->temporary_, &upload->handle_)
                       : upload->OpenPartial(identity);
  if (!failure.ok()) {
    upload->temporary_.clear();
    return Fail(store.Because(failure, "write", upload->key_));
  }
  return upload;
}

SftpFailure SftpUpload::OpenPartial(const std::string& identity) {
  const std::string folder = key_.substr(0, key_.rfind('/') + 1);
  temporary_ = store_.PathOf(folder + PartialName(identity));
  journal_path_ = temporary_ + ".done";
  ReadJournal();
  SftpFailure failure = store_.OpenInFolder(*session_, temporary_, kSftpWrite | kSftpCreate, &handle_);
  if (failure.ok()) OpenJournal();
  if (failure.ok() || failure.link) return failure;
  // A server that opens no file for writing that is there already: then this upload cannot be gone on with.
  std::fill(written_.begin(), written_.end(), false);
  missing_ = static_cast<int64_t>(written_.size());
  journal_path_.clear();
  return store_.OpenTemporary(*session_, key_, &temporary_, &handle_);
}

bool SftpUpload::IsAsItSays(const std::string& handle, const PartJournal::Line& line) const {
  std::string bytes;
  return session_->Read(handle, line.part * kPartSize, journal_.BytesOf(line.part), &bytes).ok() &&
         static_cast<int64_t>(bytes.size()) == journal_.BytesOf(line.part) &&
         PartJournal::CrcText(bytes) == line.crc;
}

// Takes what it says, as far as the file has it. Files are read by handles of their own: not every server
// reads by one that is open for writing.
void SftpUpload::ReadJournal() {
  std::string journal, file, text;
  SftpAttributes attributes;
  const bool read = session_->Open(journal_path_, kSftpRead, std::nullopt, &journal).ok() &&
                    session_->Read(journal, 0, journal_.MostBytes(), &text).ok() &&
                    session_->Open(temporary_, kSftpRead, std::nullopt, &file).ok() &&
                    session_->StatOpen(file, &attributes).ok();
  size_t good = 0;
  const std::vector<PartJournal::Line> lines = journal_.Parse(text, &good);
  const size_t again = session_->CanSync() ? std::min(lines.size(), kReadAgain) : lines.size();
  bool right = read && good > 0;
  for (size_t i = 0; i < lines.size() && right; ++i) {
    const int64_t end = lines[i].part * kPartSize + journal_.BytesOf(lines[i].part);
    right = end <= attributes.size.value_or(0) && (i + again < lines.size() || IsAsItSays(file, lines[i]));
  }
  for (const std::string& handle : {journal, file})
    if (!handle.empty()) session_->Close(handle);
  if (!right) return;
  for (const PartJournal::Line& line : lines) written_[static_cast<size_t>(line.part)] = true;
  missing_ = std::count(written_.begin(), written_.end(), false);
  journal_end_ = static_cast<int64_t>(good);
}

// Goes on behind what was read of it. Without a journal the upload begins from the start when it is cut off.
void SftpUpload::OpenJournal() {
  const uint32_t flags = kSftpWrite | kSftpCreate | (journal_end_ > 0 ? 0 : kSftpTruncate);
  if (!store_.OpenInFolder(*session_, journal_path_, flags, &journal_handle_).ok()) journal_handle_.clear();
  if (journal_end_ > 0 || journal_handle_.empty()) return;
  (void)session_->Write(journal_handle_, 0, journal_.Head());
  journal_end_ = static_cast<int64_t>(journal_.Head().size());
}

SftpUpload::~SftpUpload() {
  if (!journal_handle_.empty()) session_->Close(journal_handle_);
  if (temporary_.empty()) return;
  session_->Close(handle_);
  if (!journal_path_.empty() && !discarded_) return;
  (void)session_->Remove(temporary_);
  if (!journal_path_.empty()) (void)session_->Remove(journal_path_);
}

Result<void> SftpUpload::Part(int64_t index, std::string_view bytes) {
  OC_TRY_VOID(ValidPart(key_, journal_.size, kPartSize, index, bytes.size()));
  const SftpFailure failure = session_->Write(handle_, index * kPartSize, bytes);
  if (!failure.ok()) return Fail(store_.Because(failure, "write", key_));
  std::unique_lock lock(mutex_);
  if (!written_[static_cast<size_t>(index)]) --missing_;
  written_[static_cast<size_t>(index)] = true;
  if (journal_handle_.empty()) return {};
  lines_ += PartJournal::LineOf(index, bytes);
  lines_bytes_ += static_cast<int64_t>(bytes.size());
  if (lines_bytes_ >= kSyncedAfter) WriteLines(&lock);
  return {};
}

// A line only for what is on the disk. Without it the part only travels again.
void SftpUpload::WriteLines(std::unique_lock<std::mutex>* lock) {
  const std::string lines = std::exchange(lines_, "");
  const int64_t at = journal_end_;
  journal_end_ += static_cast<int64_t>(lines.size());
  lines_bytes_ = 0;
  lock->unlock();
  if (session_->Sync(handle_).ok()) (void)session_->Write(journal_handle_, at, lines);
  lock->lock();
}

bool SftpUpload::Has(int64_t index) const {
  const std::lock_guard lock(mutex_);
  return index >= 0 && index < static_cast<int64_t>(written_.size()) && written_[static_cast<size_t>(index)];
}

Result<void> SftpUpload::ReadBack(int64_t offset, int64_t bytes, std::string* out) const {
  std::string handle;
  SftpFailure failure = session_->Open(temporary_, kSftpRead, std::nullopt, &handle);
  if (failure.ok()) {
    failure = session_->Read(handle, offset, bytes, out);
    session_->Close(handle);
  }
  if (!failure.ok()) return Fail(store_.Because(failure, "read", key_));
  return {};
}

// Another process that sent the same had the file under the same name.
bool SftpUpload::WasPlacedByAnother() const {
  SftpAttributes there;
  return !journal_path_.empty() && session_->Stat(store_.PathOf(key_), true, &there).ok() &&
         there.size.value_or(-1) == journal_.size;
}

Result<void> SftpUpload::Finish() {
  const std::lock_guard lock(mutex_);
  if (missing_ > 0 || temporary_.empty())
    return Fail(ErrorCode::kUsage, StrCat(missing_, " parts of ", Quoted(key_, 200), " are missing"));
  const std::string temporary = std::exchange(temporary_, "");
  Result<void> placed = store_.Place(*session_, temporary, handle_, key_, mode_);
  if (!journal_path_.empty()) (void)session_->Remove(journal_path_);
  if (!placed && placed.error().code == ErrorCode::kNotFound && WasPlacedByAnother()) return {};
  return placed;
}

}  // namespace overcap
