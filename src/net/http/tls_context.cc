// SPDX-License-Identifier: Apache-2.0
#include "net/http/tls_context.h"

#include <arpa/inet.h>
#include <memory>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "net/http/tls_stream.h"

namespace overcap {
namespace {

// Where the lists of trusted certificates of the usual systems lie: OpenSSL as it is linked in knows Debian's
// only.
constexpr const char* kSystemLists[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                        "/etc/ssl/cert.pem"};

constexpr size_t kMostHosts = 4;  // of a certificate, in a message

std::string LastReason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "no reason is given";
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// The certificate must be for this host; its name is told to the server, which may have several.
bool Expect(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  if (IsAddress(host)) return X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 && SSL_set1_host(ssl, host.c_str()) == 1;
}

// The hosts that a certificate is for, as people read them.
std::string HostsOf(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::vector<std::string> hosts;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()) && hosts.size() < kMostHosts; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    const auto bytes = [](const ASN1_STRING* text) {
      return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                         static_cast<size_t>(ASN1_STRING_length(text)));
    };
    char address[INET6_ADDRSTRLEN];
    if (name->type == GEN_DNS) {
      hosts.push_back(Quoted(bytes(name->d.dNSName), 100));
    } else if (name->type == GEN_IPADD) {
      const std::string raw = bytes(name->d.iPAddress);
      const int family = raw.size() == 4 ? AF_INET : raw.size() == 16 ? AF_INET6 : AF_UNSPEC;
      if (inet_ntop(family, raw.data(), address, sizeof address) != nullptr) hosts.push_back(Quoted(address));
    }
  }
  return Join(hosts, ", ");
}

// Called by OpenSSL for each certificate: one that is for another host is kept for the error to name its own.
int NoteHosts(int well, X509_STORE_CTX* verification) {
  const int error = X509_STORE_CTX_get_error(verification);
  if (well == 1 || (error != X509_V_ERR_HOSTNAME_MISMATCH && error != X509_V_ERR_IP_ADDRESS_MISMATCH))
    return well;
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()));
  X509* certificate = X509_STORE_CTX_get_current_cert(verification);
  if (ssl != nullptr && certificate != nullptr)
    *static_cast<std::string*>(SSL_get_app_data(ssl)) = HostsOf(certificate);
  return well;
}

Error HandshakeError(SSL* ssl, const std::string& peer, int error_number, const std::string& hosts) {
  const long verdict = SSL_get_verify_result(ssl);
  if (!hosts.empty())
    return {ErrorCode::kDenied, StrCat("the certificate of '", peer, "' is for another host: ", hosts),
            "name the service as its certificate does"};
  if (verdict != X509_V_OK)
    return {
        ErrorCode::kDenied,
        StrCat("the certificate of '", peer, "' does not fit: ", X509_verify_cert_error_string(verdict)),
        "if the service has a certificate of its own making, name the file that vouches for it (ca_file)"};
  const unsigned long code = ERR_peek_last_error();
  if (code == 0) return LostConnection(peer, error_number);
  const int reason = ERR_GET_REASON(code);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_UNSUPPORTED_PROTOCOL)
    return {ErrorCode::kDenied, StrCat("'", peer, "' does not speak TLS"),
            "if it is meant to be without encryption, write http:// instead of https://"};
  if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) return LostConnection(peer, 0);
  return {ErrorCode::kDenied, StrCat("no encrypted connection to '", peer, "': ", LastReason()), ""};
}

}  // namespace

TlsContext::TlsContext(ssl_ctx_st* context) : context_(context, SSL_CTX_free) {}

Result<std::shared_ptr<TlsContext>> TlsContext::Make(const TlsSettings& settings) {
  ERR_clear_error();
  SSL_CTX* raw = SSL_CTX_new(TLS_client_method());
  if (raw == nullptr) return Fail(ErrorCode::kInternal, StrCat("cannot set up TLS: ", LastReason()));
  std::shared_ptr<TlsContext> made(new TlsContext(raw));
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION);
  OC_TRY_VOID(made->Trust(settings.ca_file));
  OC_TRY_VOID(made->Identify(settings));
  return made;
}

Result<void> TlsContext::Trust(const std::string& ca_file) {
  if (!ca_file.empty()) {
    if (SSL_CTX_load_verify_file(context_.get(), ca_file.c_str()) == 1) return {};
    return Fail(ErrorCode::kUsage, StrCat("no certificates can be read from ", Quoted(ca_file, 500)));
  }
  SSL_CTX_set_default_verify_paths(context_.get());
  for (const char* list : kSystemLists) {
    if (access(list, R_OK) == 0 && SSL_CTX_load_verify_file(context_.get(), list) == 1) break;
  }
  ERR_clear_error();
  return {};
}

Result<void> TlsContext::Identify(const TlsSettings& settings) {
  if (settings.cert_file.empty() && settings.key_file.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context_.get(), settings.cert_file.c_str()) != 1)
    return Fail(ErrorCode::kUsage,
                StrCat("no certificate can be read from ", Quoted(settings.cert_file, 500)));
  if (SSL_CTX_use_PrivateKey_file(context_.get(), settings.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context_.get()) != 1)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(settings.key_file, 500), " does not hold the key of ",
                                          Quoted(settings.cert_file, 500)));
  return {};
}

Result<std::unique_ptr<NetStream>> TlsContext::Connect(Fd socket, const std::string& host,
                                                       const HttpWait& wait) const {
  const int fd = socket.Get();
  auto stream = TlsStream::Begin(context_.get(), std::move(socket), wait.peer());
  if (!stream || !Expect(stream->ssl(), host))
    return Fail(ErrorCode::kInternal, StrCat("cannot set up TLS for '", wait.peer(), "'"));
  std::string hosts;  // that the certificate is for, when none of them is this one
  SSL_set_app_data(stream->ssl(), &hosts);
  SSL_set_verify(stream->ssl(), SSL_VERIFY_PEER, NoteHosts);
  while (true) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_connect(stream->ssl());
    if (done == 1) {
      SSL_set_app_data(stream->ssl(), nullptr);
      SSL_set_verify(stream->ssl(), SSL_VERIFY_PEER, nullptr);
      return std::unique_ptr<NetStream>(std::move(stream));
    }
    const int error_number = errno, why = SSL_get_error(stream->ssl(), done);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
      return Fail(HandshakeError(stream->ssl(), wait.peer(), error_number, hosts));
    OC_TRY(ready, wait.For(fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT));
    (void)ready;
  }
}

}  // namespace overcap
