// SPDX-License-Identifier: Apache-2.0
#include "net/http/tls_stream.h"

#include <cerrno>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/http/tls_bio.h"

namespace overcap {
namespace {

constexpr size_t kRecord = 16 * 1024;

}  // namespace

TlsStream::TlsStream(ssl_st* ssl, Fd socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)), ssl_(ssl, SSL_free) {}

std::unique_ptr<TlsStream> TlsStream::Begin(ssl_ctx_st* context, Fd socket, std::string peer) {
  SSL* ssl = SSL_new(context);
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsStream> stream(new TlsStream(ssl, std::move(socket), std::move(peer)));
  BIO* bio = NewQuietSocketBio(stream->fd());
  if (bio == nullptr) return nullptr;
  SSL_set_bio(ssl, bio, bio);
  return stream;
}

// Says good-bye, without waiting whether it arrives.
TlsStream::~TlsStream() {
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

Result<NetStep> TlsStream::After(int result, size_t moved) {
  if (result == 1) return NetStep{moved, 0, false};
  const int error_number = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return NetStep{0, POLLIN, false};
    case SSL_ERROR_WANT_WRITE:
      return NetStep{0, POLLOUT, false};
    case SSL_ERROR_ZERO_RETURN:
      return NetStep{0, 0, true};
    case SSL_ERROR_SYSCALL:
      SSL_set_quiet_shutdown(ssl_.get(), 1);
      return Fail(LostConnection(peer_, error_number));
    default:  // an end without good-bye is one of these: whoever cuts a connection cannot make it look whole
      SSL_set_quiet_shutdown(ssl_.get(), 1);
      return Fail(LostConnection(peer_, 0));
  }
}

Result<NetStep> TlsStream::Read(char* into, size_t size) {
  ERR_clear_error();
  errno = 0;
  size_t moved = 0;
  const int result = SSL_read_ex(ssl_.get(), into, size, &moved);
  return After(result, moved);
}

// The same pieces give the same record again, as OpenSSL wants it after a wait.
Result<NetStep> TlsStream::Write(std::span<const std::string_view> pieces) {
  while (pieces.front().empty()) pieces = pieces.subspan(1);
  std::string_view first = pieces.front();
  if (first.size() < kRecord && pieces.size() > 1) {
    joined_.clear();
    for (const std::string_view piece : pieces) {
      if (joined_.size() == kRecord) break;
      joined_.append(piece.substr(0, kRecord - joined_.size()));
    }
    first = joined_;
  }
  ERR_clear_error();
  errno = 0;
  size_t moved = 0;
  const int result = SSL_write_ex(ssl_.get(), first.data(), first.size(), &moved);
  return After(result, moved);
}

}  // namespace overcap
