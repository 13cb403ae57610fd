// SPDX-License-Identifier: Apache-2.0
// A store in the memory of this process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stores/store.h"

namespace overcap {

class MemStore : public Store {
 public:
  // What several stores of one name share.
  struct Content {
    struct Object {
      std::shared_ptr<const std::string> bytes;
      int64_t modified_us = 0;
      int64_t number = 0;  // of the put that made it
    };
    std::mutex mutex;  // guards all below
    int64_t puts = 0;
    std::map<std::string, Object, std::less<>> objects;
  };

  explicit MemStore(std::string name = "", std::shared_ptr<Content> content = std::make_shared<Content>(),
                    KeyRule keys = KeyRule::kPlain);
  // All stores of one name have the same content as long as the process lives. kNotFound for a name that
  // nobody has made.
  static Result<std::unique_ptr<MemStore>> Named(const std::string& name, bool create,
                                                 KeyRule keys = KeyRule::kPlain);

  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  Result<std::unique_ptr<StoreUpload>> StartUpload(const std::string& key, int64_t size,
                                                   PutMode mode) override;
  std::string Location() const override { return "mem:" + name_; }

 private:
  Result<Content::Object> Find(const std::string& key) const;

  std::string name_;
  std::shared_ptr<Content> content_;
  KeyRule keys_;
};

}  // namespace overcap
