// SPDX-License-Identifier: Apache-2.0
// What can be asked of an SFTP server, one function each; large reads and writes have many questions in
// flight.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stores/sftp/sftp_link.h"

namespace overcap {

// What went wrong: the link (`error`), or what the server says (`code`).
struct SftpFailure {
  SftpCode code = SftpCode::kOk;
  std::string message;
  std::optional<Error> link;

  bool ok() const { return code == SftpCode::kOk && !link; }
  bool Is(SftpCode which) const { return !link && code == which; }
};

// All functions may be called from several threads; paths are the server's, relative to the user's home.
class SftpSession {
 public:
  explicit SftpSession(std::shared_ptr<SftpLink> link) : link_(std::move(link)) {}

  SftpFailure Open(const std::string& path, uint32_t flags, std::optional<uint32_t> mode,
                   std::string* handle);
  void Close(const std::string& handle);  // does not wait
  SftpFailure CloseAndWait(const std::string& handle);
  SftpFailure Stat(const std::string& path, bool follow, SftpAttributes* attributes);
  SftpFailure StatOpen(const std::string& handle, SftpAttributes* attributes);
  // [offset, offset + size), less at the end of the file.
  SftpFailure Read(const std::string& handle, int64_t offset, int64_t size, std::string* out);
  SftpFailure Write(const std::string& handle, int64_t offset, std::string_view bytes);
  SftpFailure Sync(const std::string& handle);  // fine where the server cannot
  bool CanSync() const { return link_->Offers("fsync@openssh.com"); }
  SftpFailure List(const std::string& path, std::vector<SftpEntry>* entries);
  SftpFailure MakeFolder(const std::string& path, std::optional<uint32_t> mode);
  SftpFailure Remove(const std::string& path);
  SftpFailure Rename(const std::string& from, const std::string& to);  // fails when `to` is there
  // In one step where the server can; else `to` is removed first.
  SftpFailure Replace(const std::string& from, const std::string& to);
  SftpFailure Link(const std::string& from, const std::string& to);  // kUnsupported where it cannot
  SftpFailure SetModified(const std::string& path, uint32_t seconds);

  bool dead() const { return link_->dead(); }

 private:
  // A question whose answer is a status.
  SftpFailure Plain(SftpType type, const SftpBody& body);
  SftpFailure WaitStatus(uint32_t id);
  SftpFailure Attributes(SftpType type, const SftpBody& body, SftpAttributes* attributes);
  Result<uint32_t> AskRead(const std::string& handle, int64_t offset, uint32_t size);
  SftpFailure TakeRead(uint32_t id, std::string* out, size_t at, uint32_t size, uint32_t* got);

  const std::shared_ptr<SftpLink> link_;
};

}  // namespace overcap
