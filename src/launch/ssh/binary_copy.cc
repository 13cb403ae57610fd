// SPDX-License-Identifier: Apache-2.0
#include "launch/ssh/binary_copy.h"

#include <openssl/evp.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kDigitBytes = 6;

Result<std::string> ShortSha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) {
    return Fail(ErrorCode::kInternal, "SHA-256 is not available");
  }
  std::string hex;
  for (size_t i = 0; i < kDigitBytes; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex.push_back(kDigits[digest[i] >> 4]);
    hex.push_back(kDigits[digest[i] & 15]);
  }
  return hex;
}

std::string InShell(const std::string& script) {
  return StrCat("sh -c ", ShellQuote(script));
}

}  // namespace

Result<BinaryCopy> BinaryCopy::Of(const std::string& file, const std::string& version) {
  OC_TRY(bytes, PosixFiles().Read(file));
  OC_TRY(digest, ShortSha256(bytes));
  return BinaryCopy{StrCat("overcap-", version, "-", digest), std::move(bytes)};
}

std::string BinaryCopy::StoreCommand() const {
  return InShell(StrCat("umask 077; d=\"$HOME/.cache/overcap/bin\"; f=\"$d/", name, "\"; t=\"$d/.", name,
                        ".$$\"; if test -x \"$f\"; then echo there; exit 0; fi; mkdir -p \"$d\" || exit 1; "
                        "cat > \"$t\" && test \"$(wc -c < \"$t\")\" -eq ",
                        bytes.size(),
                        " && chmod 700 \"$t\" && mv -f \"$t\" \"$f\" && exit 0; rm -f \"$t\"; exit 1"));
}

std::string BinaryCopy::NodeCommand(const std::string& verb) const {
  return InShell(StrCat("exec \"$HOME/.cache/overcap/bin/", name, "\" ", verb));
}

}  // namespace overcap
