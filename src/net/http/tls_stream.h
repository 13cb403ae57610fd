// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/http/net_stream.h"

struct ssl_st;
struct ssl_ctx_st;

namespace overcap {

// An encrypted connection. TlsContext makes it and shakes hands.
class TlsStream : public NetStream {
 public:
  static std::unique_ptr<TlsStream> Begin(ssl_ctx_st* context, Fd socket, std::string peer);
  ~TlsStream() override;

  Result<NetStep> Read(char* into, size_t size) override;
  Result<NetStep> Write(std::span<const std::string_view> pieces) override;
  int fd() const override { return socket_.Get(); }
  bool plain() const override { return false; }
  ssl_st* ssl() const { return ssl_.get(); }

 private:
  TlsStream(ssl_st* ssl, Fd socket, std::string peer);
  Result<NetStep> After(int result, size_t moved);

  const Fd socket_;
  const std::string peer_;
  std::string joined_;  // small pieces as one record
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
};

}  // namespace overcap
