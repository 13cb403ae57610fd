// SPDX-License-Identifier: Apache-2.0
// The real service that tests/stores/test_azblob.py started, as the environment names it.
#pragma once

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "stores/azblob/azure_access.h"

namespace overcap {

struct AzureTestServer {
  AzureAccess access;

  // None, or one.
  static std::vector<AzureTestServer> FromEnvironment() {
    const auto value = [](const char* name) {
      const char* text = getenv(name);
      return std::string(text != nullptr ? text : "");
    };
    AzureTestServer server;
    server.access.endpoint = value("OVERCAP_TEST_AZURE_ENDPOINT");
    server.access.account = value("OVERCAP_TEST_AZURE_ACCOUNT");
    server.access.key = value("OVERCAP_TEST_AZURE_KEY");
    server.access.container = value("OVERCAP_TEST_AZURE_CONTAINER");
    if (server.access.endpoint.empty()) return {};
    return {server};
  }
};

inline void PrintTo(const AzureTestServer& server, std::ostream* out) {
  *out << server.access.endpoint;
}

}  // namespace overcap
