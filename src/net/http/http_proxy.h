// SPDX-License-Identifier: Apache-2.0
// Proxies as other programs find them: http_proxy, https_proxy, all_proxy and no_proxy of the environment.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "net/http/http_wait.h"
#include "net/http/url.h"
#include "sys/fd.h"
#include "sys/variables.h"

namespace overcap {

struct HttpProxy {
  HttpOrigin origin;          // never TLS
  std::string authorization;  // "Basic ...", for Proxy-Authorization; "": none

  std::string Text() const;  // "proxy.lab:3128", for messages: no password
};

// The proxy for that server, if the environment names one. Names in small letters count first; this machine
// (localhost, 127.0.0.0/8, ::1) is never reached through one. kUsage, without repeating its value, when a
// variable names something else than an http:// proxy. Pure.
Result<std::optional<HttpProxy>> ProxyOf(const HttpOrigin& origin, const Variables& variables);

// Makes of a connection to the proxy one to `origin` (CONNECT). kDenied when the proxy wants a password or
// another one, kUnavailable when it does not do it.
Result<void> OpenTunnel(const Fd& connection, const HttpProxy& proxy, const HttpOrigin& origin,
                        const HttpWait& wait);

}  // namespace overcap
