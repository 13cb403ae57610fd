// SPDX-License-Identifier: Apache-2.0
// What an S3 service says when it says no, and what that means to people. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/http_message.h"

namespace overcap {

struct S3Problem {
  int status = 0;
  std::string code;      // "NoSuchKey"; "" when the answer had none (HEAD, a server that is not S3)
  std::string message;   // theirs
  std::string region;    // the right one, where they tell it
  bool foreign = false;  // the answer is not S3's at all: HTML, say
};

// Of an answer of 300 and above, or of one of 200 whose body is an <Error>.
S3Problem ReadS3Problem(const HttpResponse& head, std::string_view body);

// Whether the same request may go well later.
bool IsPassing(const S3Problem& problem);

// Whom and what the request was about.
struct S3Subject {
  std::string location;  // "s3://bucket/prefix"
  std::string bucket, region, endpoint;
  std::string key;   // as the user of the store knows it; "": the bucket
  std::string verb;  // "read", "write", "list", "remove"
};

Error S3ErrorOf(const S3Problem& problem, const S3Subject& subject);

}  // namespace overcap
