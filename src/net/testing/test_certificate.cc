// SPDX-License-Identifier: Apache-2.0
#include "net/testing/test_certificate.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr long kDay = 86'400;

template <typename T>
T* Must(T* pointer) {
  if (pointer == nullptr) abort();
  return pointer;
}

void AddExtension(X509* certificate, int kind, const std::string& text) {
  X509_EXTENSION* extension = Must(X509V3_EXT_conf_nid(nullptr, nullptr, kind, text.c_str()));
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

template <typename Write>
void ToFile(const std::string& path, const Write& write) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(Must(fopen(path.c_str(), "w")), fclose);
  if (write(file.get()) != 1) abort();
}

}  // namespace

TestCertificate MakeTestCertificate(const std::string& folder, const std::string& name,
                                    const std::vector<std::string>& names) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(Must(EVP_EC_gen("P-256")), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(Must(X509_new()), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate.get(), NID_subject_alt_name, Join(names, ","));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) abort();
  const TestCertificate made{StrCat(folder, "/", name, ".pem"), StrCat(folder, "/", name, ".key")};
  ToFile(made.cert_file, [&](FILE* file) { return PEM_write_X509(file, certificate.get()); });
  ToFile(made.key_file, [&](FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return made;
}

}  // namespace overcap
