// SPDX-License-Identifier: Apache-2.0
// The real S3 service that tests/stores/*.py started, as the environment names it.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "stores/s3/s3_store.h"

namespace overcap {

struct S3TestServer {
  S3Access access;
  std::string bucket;

  // None, or one.
  static std::vector<S3TestServer> FromEnvironment() {
    const auto value = [](const char* name) {
      const char* text = getenv(name);
      return std::string(text != nullptr ? text : "");
    };
    S3TestServer server;
    server.access.endpoint = value("OVERCAP_TEST_S3_ENDPOINT");
    server.access.access_key = value("OVERCAP_TEST_S3_KEY");
    server.access.secret = value("OVERCAP_TEST_S3_SECRET");
    server.access.region = value("OVERCAP_TEST_S3_REGION");
    server.access.path_style = true;
    server.bucket = value("OVERCAP_TEST_S3_BUCKET");
    if (server.access.endpoint.empty()) return {};
    return {server};
  }
};

inline void PrintTo(const S3TestServer& server, std::ostream* out) {
  *out << server.access.endpoint;
}

}  // namespace overcap
