// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_upload.h"

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kPartSize = 8 << 20;

}  // namespace

Result<std::unique_ptr<SftpUpload>> SftpUpload::Start(const SftpStore& store, std::string key, int64_t size,
                                                      PutMode mode) {
  if (size < 0) return Fail(ErrorCode::kUsage, StrCat(Quoted(key, 200), " cannot have ", size, " bytes"));
  std::unique_ptr<SftpUpload> upload(new SftpUpload(store, std::move(key), size, mode));
  OC_TRY(session, store.Session());
  upload->session_ = session;
  const SftpFailure failure =
      store.OpenTemporary(*session, upload->key_, &upload->temporary_, &upload->handle_);
  if (!failure.ok()) {
    upload->temporary_.clear();
    return Fail(store.Because(failure, "write", upload->key_));
  }
  upload->missing_ = PartCount(size, kPartSize);
  upload->written_.resize(static_cast<size_t>(upload->missing_));
  return upload;
}

SftpUpload::~SftpUpload() {
  if (temporary_.empty()) return;
  session_->Close(handle_);
  (void)session_->Remove(temporary_);
}

int64_t SftpUpload::PartSize() const {
  return kPartSize;
}

Result<void> SftpUpload::Part(int64_t index, std::string_view bytes) {
  OC_TRY_VOID(ValidPart(key_, size_, kPartSize, index, bytes.size()));
  const SftpFailure failure = session_->Write(handle_, index * kPartSize, bytes);
  if (!failure.ok()) return Fail(store_.Because(failure, "write", key_));
  const std::lock_guard lock(mutex_);
  if (!written_[static_cast<size_t>(index)]) --missing_;
  written_[static_cast<size_t>(index)] = true;
  return {};
}

Result<void> SftpUpload::Finish() {
  const std::lock_guard lock(mutex_);
  if (missing_ > 0 || temporary_.empty())
    return Fail(ErrorCode::kUsage, StrCat(missing_, " parts of ", Quoted(key_, 200), " are missing"));
  const std::string temporary = std::exchange(temporary_, "");
  return store_.Place(*session_, temporary, handle_, key_, mode_);
}

}  // namespace overcap
