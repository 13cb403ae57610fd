// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace overcap {

// How an S3 service is reached and with which keys. Where they come from is the caller's matter; they appear
// in no message.
struct S3Access {
  std::string endpoint;              // "https://minio.lab:9000"; "": AWS's own endpoint of the region
  std::string region = "us-east-1";  // part of every signature
  std::string access_key, secret;
  std::string session_token;  // of temporary keys; "": none
  bool path_style = false;    // https://host/bucket/key instead of https://bucket.host/key
  std::string ca_file;        // certificates (PEM) to trust instead of the system's; "": the system's
};

}  // namespace overcap
