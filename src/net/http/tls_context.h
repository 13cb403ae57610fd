// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/http/http_wait.h"
#include "net/http/net_stream.h"

struct ssl_ctx_st;

namespace overcap {

// PEM files. There is no way to leave verification out.
struct TlsSettings {
  std::string ca_file;              // whom to trust instead of the system's list; "": the system's
  std::string cert_file, key_file;  // to show who we are; "": nobody asks
};

// What all encrypted connections of a client share: whom it trusts, who it is. Any number of threads.
class TlsContext {
 public:
  // kUsage, naming the file, when one cannot be read or does not fit.
  static Result<std::shared_ptr<TlsContext>> Make(const TlsSettings& settings);

  // The handshake over a connected socket. kDenied when the certificate does not fit `host`, kUnavailable
  // when the connection breaks.
  Result<std::unique_ptr<NetStream>> Connect(Fd socket, const std::string& host, const HttpWait& wait) const;

 private:
  explicit TlsContext(ssl_ctx_st* context);
  Result<void> Trust(const std::string& ca_file);
  Result<void> Identify(const TlsSettings& settings);

  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
};

}  // namespace overcap
