// SPDX-License-Identifier: Apache-2.0
// Which store a location means: the only place outside their own folders that names them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "stores/location.h"
#include "stores/store.h"

namespace overcap {

// How stores are reached, beside what their location says. Only what the location needs is looked at. Keys
// appear in no message.
struct StoreAccess {
  struct S3 {
    std::string endpoint = {};  // "": AWS's own
    std::string region = {};
    std::string access_key = {}, secret = {}, session_token = {};
    bool path_style = false;
    std::string ca_file = {};    // "": the system's certificates
    std::string keys_from = {};  // where they were found, for people
  };
  struct Azure {
    std::string endpoint = {};       // "": Azure's own
    std::string key = {}, sas = {};  // one of the two
    std::string ca_file = {};
    std::string keys_from = {};  // where it was found, for people
  };
  S3 s3;
  Azure azure;
  std::string ssh_program = "ssh";
  std::vector<std::string> ssh_env;
};

struct OpenStoreOptions {
  bool create = false;  // a folder that is missing is made; buckets never are
  KeyRule keys = KeyRule::kPlain;
  bool private_files = true;  // folders and ssh: 0600 and 0700; else as the umask says
  bool durable = true;        // puts are durable when they return; else after Flush
  int64_t patience_us = 0;    // with services and ssh: about so long for one call; 0: as long as is usual
  bool answered = false;      // a service has answered another process: its first call gets no shorter time
};

// kUsage, kNotFound for a folder that is missing, kDenied, kUnavailable. Whether a bucket is there is known
// with the first call.
Result<std::unique_ptr<Store>> OpenStore(const StoreLocation& location, const StoreAccess& access,
                                         const OpenStoreOptions& options);

// `location` is an absolute path (a folder, made when `create` is set and it is missing) or "mem:NAME"
// (memory of this process, for tests). kUsage for another scheme, kNotFound for a folder that is missing.
Result<std::unique_ptr<Store>> OpenStore(const std::string& location, bool create);

// A URL with which anybody may read the object for `seconds`. The service is asked for the object first, so
// that the URL's time is right by its clock. kUsage for kinds that have no such thing.
Result<std::string> StoreUrl(const StoreLocation& location, const StoreAccess& access, const std::string& key,
                             int64_t seconds);

}  // namespace overcap
