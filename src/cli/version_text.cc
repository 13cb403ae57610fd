// SPDX-License-Identifier: Apache-2.0
#include "cli/version_text.h"

#include <algorithm>
#include <lz4.h>
#include <openssl/crypto.h>
#include <string_view>
#include <vector>
#include <zlib.h>
#include <zstd.h>

#include <gnu/libc-version.h>
#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "base/json_writer.h"
#include "base/text.h"

namespace overcap::cli {
namespace {

struct Part {
  std::string name, version;
};

// "OpenSSL 3.0.19 27 Jan 2026" -> "3.0.19"
std::string SecondWord(std::string_view text) {
  const std::vector<std::string> words = Split(text, ' ');
  return words.size() > 1 ? words[1] : std::string(text);
}

std::vector<Part> Libraries() {
  return {
      {"OpenSSL", SecondWord(OpenSSL_version(OPENSSL_VERSION))},
      {"yaml-cpp", std::string(BuildFact("yaml-cpp version"))},
      {"zstd", ZSTD_versionString()},
      {"lz4", LZ4_versionString()},
      {"zlib", zlibVersion()},
      {"nlohmann json", StrCat(NLOHMANN_JSON_VERSION_MAJOR, ".", NLOHMANN_JSON_VERSION_MINOR, ".",
                               NLOHMANN_JSON_VERSION_PATCH)},
      {"tl expected",
       StrCat(TL_EXPECTED_VERSION_MAJOR, ".", TL_EXPECTED_VERSION_MINOR, ".", TL_EXPECTED_VERSION_PATCH)},
      {"libstdc++", StrCat(_GLIBCXX_RELEASE)},
  };
}

std::vector<std::string> Hardening() {
  std::vector<std::string> found;
#ifdef __PIE__
  found.emplace_back("position independent");
#endif
#if defined(__SSP_STRONG__) || defined(__SSP_ALL__)
  found.emplace_back("stack protector");
#endif
#if defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0
  found.push_back(StrCat("FORTIFY_SOURCE=", _FORTIFY_SOURCE));
#endif
  found.insert(found.end(),
               {"full RELRO", "no executable stack"});  // of the linker, always (src/CMakeLists.txt)
  return found;
}

std::string FullVersionJson() {
  JsonWriter json;
  json.BeginObject().Field("version", OVERCAP_VERSION).Key("libraries").BeginArray();
  for (const Part& part : Libraries()) {
    json.BeginObject().Field("name", part.name).Field("version", part.version);
    if (const auto package = BuildFact(part.name); !package.empty()) json.Field("package", package);
    json.EndObject();
  }
  json.EndArray().Field("compiler", "g++ " __VERSION__).Field("glibc", gnu_get_libc_version());
  json.Field("hardening", Hardening());
  return json.EndObject().Take() + "\n";
}

std::string FullVersionText() {
  std::string text = StrCat("overcap ", OVERCAP_VERSION, "\ninside:\n");
  for (const Part& part : Libraries()) {
    const std::string_view package = BuildFact(part.name);
    text +=
        StrCat("  ", part.name, " ", part.version, package.empty() ? "" : StrCat(" (", package, ")"), "\n");
  }
  text += StrCat("compiler: g++ ", __VERSION__, "\nglibc of this machine: ", gnu_get_libc_version(), "\n");
  return text + StrCat("hardening: ", Join(Hardening(), ", "), "\n");
}

}  // namespace

std::optional<std::string> FullVersionFor(std::span<const std::string> words) {
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool json = has("--json");
  if (!has("--version") || !has("--full") || words.size() != (json ? 3 : 2)) return std::nullopt;
  return json ? FullVersionJson() : FullVersionText();
}

}  // namespace overcap::cli
