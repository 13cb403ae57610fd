// SPDX-License-Identifier: Apache-2.0
// What Azure Blob Storage says when it says no, and what that means to people. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/http_message.h"

namespace overcap {

struct AzureProblem {
  int status = 0;
  std::string code;      // "BlobNotFound"; "" when the answer is not Azure's
  std::string message;   // theirs
  bool foreign = false;  // HTML, say
};

AzureProblem ReadAzureProblem(const HttpResponse& head, std::string_view body);
bool IsPassing(const AzureProblem& problem);

struct AzureSubject {
  std::string location;  // "az://account/container/prefix"
  std::string account, container, endpoint;
  std::string key;   // as the user of the store knows it; "": the container
  std::string verb;  // "read", "write", "list", "remove"
  bool by_sas = false;
  bool sas_expired = false;
};

Error AzureErrorOf(const AzureProblem& problem, const AzureSubject& subject);

}  // namespace overcap
