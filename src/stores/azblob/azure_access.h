// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace overcap {

// How a container of Azure Blob Storage is reached. Either `key` or `sas` is set; they appear in no message.
struct AzureAccess {
  std::string account;
  std::string key;  // Shared Key, base64 as Azure gives it
  std::string sas;  // a shared access signature; a '?' that it begins with does no harm
  // "": https://ACCOUNT.blob.core.windows.net. "http://127.0.0.1:10000/ACCOUNT" is the emulator's style: a
  // path means that the account stands in it.
  std::string endpoint;
  std::string container;
  std::string ca_file;  // certificates (PEM) to trust instead of the system's; "": the system's
};

}  // namespace overcap
