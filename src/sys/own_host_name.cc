// SPDX-License-Identifier: Apache-2.0
#include "sys/own_host_name.h"

#include <cstdlib>
#include <limits.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {

std::string OwnHostName() {
  char name[HOST_NAME_MAX + 1] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

namespace {

// What is one word in messages and commands, whatever the variable holds.
std::string Word(std::string text) {
  std::erase_if(text, [](unsigned char c) { return c <= ' ' || c == '/' || c >= 0x7f; });
  return text;
}

}  // namespace

const std::string& OwnHost() {
  static const std::string host = [] {
    const char* given = getenv("OVERCAP_HOST");
    std::string name = Word(given != nullptr ? given : "");
    if (name.empty()) name = Word(OwnHostName());
    return StrCat(name, "/", Word(PosixFiles().Read("/etc/machine-id").value_or("")));
  }();
  return host;
}

std::string_view HostNameIn(std::string_view host) {
  return host.substr(0, host.find('/'));
}

}  // namespace overcap
