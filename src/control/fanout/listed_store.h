// SPDX-License-Identifier: Apache-2.0
// Objects that somebody else has listed, and of whom one can ask URLs to read them: what a node that has no
// keys knows of a store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "stores/service_link.h"
#include "stores/store.h"
#include "sys/clock.h"

namespace overcap {

// Only to be read.
class ListedStore : public Store {
 public:
  struct Settings {
    std::string location;  // for messages
    std::string ca_file;   // "": the system's
    ServiceTuning tuning = {};
  };
  // A URL of the object that is good for some minutes; from any thread.
  using AskUrl = std::function<Result<std::string>(const std::string& key)>;

  ListedStore(std::vector<StoredObjectInfo> objects, AskUrl ask, Settings settings);

  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  // By ranges, with If-Match. kConflict: it has been replaced or removed since.
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t) override { return 0; }
  std::string Location() const override { return settings_.location; }

 private:
  struct KnownUrl {
    std::string text;
    int64_t since_us = 0;
  };

  Result<KnownUrl> UrlFor(const std::string& key, bool anew) const;
  Result<ServiceLink*> LinkTo(const std::string& url, std::string* target) const;
  Result<HttpResponse> Ask(const std::string& url, const StoredObjectInfo& object, int64_t offset,
                           int64_t limit, std::string* out) const;
  void NoteEncryption(const std::string& key, const HttpResponse& head) const;
  tl::unexpected<Error> Refused(const StoredObjectInfo& object, int status) const;

  std::map<std::string, StoredObjectInfo> objects_;
  const AskUrl ask_;
  const Settings settings_;
  const PosixClock clock_ = {};
  mutable std::mutex mutex_;                                           // guards what follows
  mutable std::map<std::string, std::unique_ptr<ServiceLink>> links_;  // by origin
  mutable std::map<std::string, KnownUrl> urls_;
  mutable std::set<std::string> no_md5_;  // what the listing takes for an MD5 is none
};

}  // namespace overcap
