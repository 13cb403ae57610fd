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
    };
    std::mutex mutex;  // guards `objects`
    std::map<std::string, Object, std::less<>> objects;
  };

  explicit MemStore(std::string name = "", std::shared_ptr<Content> content = std::make_shared<Content>());
  // All stores of one name have the same content as long as the process lives. kNotFound for a name that
  // nobody has made.
  static Result<std::unique_ptr<MemStore>> Named(const std::string& name, bool create);

  using Store::Get;
  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<std::string> Get(const std::string& key, int64_t offset, int64_t limit) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  std::string Location() const override { return "mem:" + name_; }

 private:
  std::string name_;
  std::shared_ptr<Content> content_;
};

}  // namespace overcap
