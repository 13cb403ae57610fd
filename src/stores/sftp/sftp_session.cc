// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_session.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace overcap {
namespace {

constexpr size_t kInFlight = 32;
constexpr int64_t kReadAtOnce = 32 << 20;

SftpFailure OfLink(Error error) {
  return {SftpCode::kConnectionLost, error.message, std::move(error)};
}

SftpFailure Nonsense() {
  return {SftpCode::kBadMessage, "the server's answer makes no sense", std::nullopt};
}

SftpFailure OfReply(const SftpReply& reply) {
  if (reply.type != SftpType::kStatus) return Nonsense();
  std::optional<SftpStatus> status = ParseSftpStatus(reply.body);
  if (!status) return Nonsense();
  return {status->code, std::move(status->message), std::nullopt};
}

}  // namespace

SftpFailure SftpSession::WaitStatus(uint32_t id) {
  const Result<SftpReply> reply = link_->Wait(id);
  return reply ? OfReply(*reply) : OfLink(reply.error());
}

SftpFailure SftpSession::Plain(SftpType type, const SftpBody& body) {
  const Result<SftpReply> reply = link_->Call(type, body);
  return reply ? OfReply(*reply) : OfLink(reply.error());
}

SftpFailure SftpSession::Open(const std::string& path, uint32_t flags, std::optional<uint32_t> mode,
                              std::string* handle) {
  SftpBody body;
  body.Text(path).U32(flags);
  mode ? body.Mode(*mode) : body.NoAttributes();
  const Result<SftpReply> reply = link_->Call(SftpType::kOpen, body);
  if (!reply) return OfLink(reply.error());
  if (reply->type != SftpType::kHandle) return OfReply(*reply);
  std::optional<std::string> given = ParseSftpText(reply->body);
  if (!given) return Nonsense();
  *handle = std::move(*given);
  return {};
}

void SftpSession::Close(const std::string& handle) {
  const Result<uint32_t> id = link_->Ask(SftpType::kClose, SftpBody().Text(handle).bytes());
  if (id) link_->Forget(*id);
}

SftpFailure SftpSession::CloseAndWait(const std::string& handle) {
  return Plain(SftpType::kClose, SftpBody().Text(handle));
}

SftpFailure SftpSession::Attributes(SftpType type, const SftpBody& body, SftpAttributes* attributes) {
  const Result<SftpReply> reply = link_->Call(type, body);
  if (!reply) return OfLink(reply.error());
  if (reply->type != SftpType::kAttrs) return OfReply(*reply);
  const auto told = ParseSftpAttributes(reply->body);
  if (!told) return Nonsense();
  *attributes = *told;
  return {};
}

SftpFailure SftpSession::Stat(const std::string& path, bool follow, SftpAttributes* attributes) {
  return Attributes(follow ? SftpType::kStat : SftpType::kLstat, SftpBody().Text(path), attributes);
}

SftpFailure SftpSession::StatOpen(const std::string& handle, SftpAttributes* attributes) {
  return Attributes(SftpType::kFstat, SftpBody().Text(handle), attributes);
}

Result<uint32_t> SftpSession::AskRead(const std::string& handle, int64_t offset, uint32_t size) {
  return link_->Ask(SftpType::kRead,
                    SftpBody().Text(handle).U64(static_cast<uint64_t>(offset)).U32(size).bytes());
}

SftpFailure SftpSession::TakeRead(uint32_t id, std::string* out, size_t at, uint32_t size, uint32_t* got) {
  *got = 0;
  Result<SftpReply> reply = link_->Wait(id);
  if (!reply) return OfLink(reply.error());
  if (reply->type != SftpType::kData) {
    SftpFailure failure = OfReply(*reply);
    if (failure.Is(SftpCode::kEof)) return {};
    return failure.ok() ? Nonsense() : failure;
  }
  if (reply->body.size() < 4) return Nonsense();
  const uint32_t told = SftpNumber(reply->body);
  if (told == 0 || told > size || told > reply->body.size() - 4) return Nonsense();
  memcpy(out->data() + at, reply->body.data() + 4, told);
  *got = told;
  return {};
}

SftpFailure SftpSession::Read(const std::string& handle, int64_t offset, int64_t size, std::string* out) {
  struct Piece {
    uint32_t id;
    int64_t at;  // from `offset`
    uint32_t size;
  };
  out->resize(static_cast<size_t>(std::min(size, kReadAtOnce)));
  std::deque<Piece> flying;
  int64_t asked = 0, end = size;
  SftpFailure failure;
  const auto ask = [&](int64_t at, uint32_t bytes) {
    const Result<uint32_t> id = AskRead(handle, offset + at, bytes);
    if (id)
      flying.push_back({*id, at, bytes});
    else if (failure.ok())
      failure = OfLink(id.error());
  };
  while (true) {
    while (failure.ok() && asked < end && flying.size() < kInFlight) {
      const auto bytes = static_cast<uint32_t>(std::min<int64_t>(end - asked, link_->read_size()));
      // A large file's size is what the server says: memory grows with what comes.
      if (asked + bytes > static_cast<int64_t>(out->size()))
        out->resize(static_cast<size_t>(std::min(size, 2 * (asked + bytes))));
      ask(asked, bytes);
      asked += bytes;
    }
    if (flying.empty()) break;
    const Piece piece = flying.front();
    flying.pop_front();
    if (!failure.ok()) {
      link_->Forget(piece.id);
      continue;
    }
    uint32_t got = 0;
    failure = TakeRead(piece.id, out, static_cast<size_t>(piece.at), piece.size, &got);
    if (got == 0)
      end = std::min(end, piece.at);
    else if (got < piece.size && piece.at < end)
      ask(piece.at + got, piece.size - got);
  }
  out->resize(static_cast<size_t>(end));
  return failure;
}

SftpFailure SftpSession::Write(const std::string& handle, int64_t offset, std::string_view bytes) {
  std::deque<uint32_t> flying;
  SftpFailure failure;
  while (true) {
    while (failure.ok() && !bytes.empty() && flying.size() < kInFlight) {
      const std::string_view piece = bytes.substr(0, link_->write_size());
      SftpBody body;
      body.Text(handle).U64(static_cast<uint64_t>(offset)).U32(static_cast<uint32_t>(piece.size()));
      const Result<uint32_t> id = link_->Ask(SftpType::kWrite, body.bytes(), piece);
      if (id)
        flying.push_back(*id);
      else
        failure = OfLink(id.error());
      bytes.remove_prefix(piece.size());
      offset += static_cast<int64_t>(piece.size());
    }
    if (flying.empty()) return failure;
    SftpFailure written = WaitStatus(flying.front());
    flying.pop_front();
    if (failure.ok()) failure = std::move(written);
  }
}

SftpFailure SftpSession::Sync(const std::string& handle) {
  if (!CanSync()) return {};
  return Plain(SftpType::kExtended, SftpBody().Text("fsync@openssh.com").Text(handle));
}

SftpFailure SftpSession::List(const std::string& path, std::vector<SftpEntry>* entries) {
  const Result<SftpReply> opened = link_->Call(SftpType::kOpendir, SftpBody().Text(path));
  if (!opened) return OfLink(opened.error());
  if (opened->type != SftpType::kHandle) return OfReply(*opened);
  const std::optional<std::string> handle = ParseSftpText(opened->body);
  if (!handle) return Nonsense();
  SftpFailure failure;
  while (true) {
    const Result<SftpReply> reply = link_->Call(SftpType::kReaddir, SftpBody().Text(*handle));
    if (!reply) return OfLink(reply.error());
    if (reply->type != SftpType::kName) {
      failure = OfReply(*reply);
      if (failure.Is(SftpCode::kEof)) failure = {};
      break;
    }
    std::optional<std::vector<SftpEntry>> some = ParseSftpNames(reply->body);
    if (!some || some->empty()) {
      failure = Nonsense();
      break;
    }
    entries->insert(entries->end(), std::make_move_iterator(some->begin()),
                    std::make_move_iterator(some->end()));
  }
  Close(*handle);
  return failure;
}

SftpFailure SftpSession::MakeFolder(const std::string& path, std::optional<uint32_t> mode) {
  SftpBody body;
  body.Text(path);
  mode ? body.Mode(*mode) : body.NoAttributes();
  return Plain(SftpType::kMkdir, body);
}

SftpFailure SftpSession::Remove(const std::string& path) {
  return Plain(SftpType::kRemove, SftpBody().Text(path));
}

SftpFailure SftpSession::Rename(const std::string& from, const std::string& to) {
  return Plain(SftpType::kRename, SftpBody().Text(from).Text(to));
}

SftpFailure SftpSession::Replace(const std::string& from, const std::string& to) {
  if (link_->Offers("posix-rename@openssh.com"))
    return Plain(SftpType::kExtended, SftpBody().Text("posix-rename@openssh.com").Text(from).Text(to));
  (void)Remove(to);
  return Rename(from, to);
}

SftpFailure SftpSession::Link(const std::string& from, const std::string& to) {
  if (!link_->Offers("hardlink@openssh.com")) return {SftpCode::kUnsupported, "no hard links", std::nullopt};
  return Plain(SftpType::kExtended, SftpBody().Text("hardlink@openssh.com").Text(from).Text(to));
}

SftpFailure SftpSession::SetModified(const std::string& path, uint32_t seconds) {
  return Plain(SftpType::kSetstat, SftpBody().Text(path).Times(seconds, seconds));
}

}  // namespace overcap
