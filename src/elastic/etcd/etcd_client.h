// SPDX-License-Identifier: Apache-2.0
// What we need of etcd v3, over its JSON gateway: a lease, a key that one of many creates, a value that only
// its creator may change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "net/http/http_client.h"
#include "sys/clock.h"

namespace overcap::elastic {

struct EtcdOptions {
  std::vector<std::pair<std::string, int>> endpoints;
  bool tls = false;
  TlsSettings certificates;
  std::string user, password;   // "": etcd asks for none
  int64_t call_us = 1'000'000;  // of one try at one endpoint
};

struct EtcdValue {
  std::string value;
  int64_t create_revision = 0, mod_revision = 0;
};

// What came of a put that was to happen only if nothing else had.
struct EtcdPut {
  int64_t revision = 0;  // of the value that was put; 0: it was not, and this is what is there instead
  std::optional<EtcdValue> value, guard;
};

// Any endpoint that answers will do; the one that did last is asked first. Each call tries every endpoint
// once; where there are several, none gets much time at first: a member that still hands on to a leader that
// is dead never answers, and the next may know better. kUnavailable: none answered, with what each said;
// kDenied: wrong credentials or certificates. One thread.
class EtcdClient {
 public:
  EtcdClient(EtcdOptions options, const Clock& clock);
  ~EtcdClient();

  Result<int64_t> GrantLease(int64_t ttl_seconds);  // its id
  Result<bool> RenewLease(int64_t lease);           // false: it is gone
  Result<void> RevokeLease(int64_t lease);          // fine when it is gone
  Result<std::pair<std::optional<EtcdValue>, std::optional<EtcdValue>>> GetBoth(const std::string& a,
                                                                                const std::string& b);
  // Under the lease, if the key is not there. The create revision, or nullopt when somebody was first.
  Result<std::optional<int64_t>> Create(const std::string& key, const std::string& value, int64_t lease);
  // If `guard` is still the one that was created then, and the key was not changed since `mod_revision` (0:
  // not there). So what was sent once, and comes late, changes nothing any more.
  Result<EtcdPut> PutIf(const std::string& key, const std::string& value, int64_t mod_revision,
                        const std::string& guard, int64_t guard_revision);

 private:
  Result<nlohmann::json> Call(const std::string& path, const std::string& body);
  Result<nlohmann::json> CallOne(size_t endpoint, const std::string& path, const std::string& body);
  Result<void> LogIn(size_t endpoint);
  int64_t TryUs() const;  // how long one endpoint may take now

  const EtcdOptions options_;
  const Clock& clock_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
  size_t good_ = 0;
  std::string token_;
  int64_t took_us_ = 0;      // the last answer
  int64_t failing_us_ = -1;  // since when none has come; -1: the last call was answered
};

}  // namespace overcap::elastic
