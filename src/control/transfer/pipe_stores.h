// SPDX-License-Identifier: Apache-2.0
// Standard input and output as stores of one object: what is copied from and to them is copied like all else.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stores/store.h"
#include "sys/fd.h"

namespace overcap {

// What one that has a single object cannot do, it refuses.
class PipeStore : public Store {
 public:
  static constexpr std::string_view kKey = "-";

  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override;

 private:
  tl::unexpected<Error> Refused() const;
};

// Bytes go out in their order, whatever the order of the threads that bring them. The descriptor stays the
// caller's.
class OutputStore : public PipeStore {
 public:
  explicit OutputStore(int fd) : fd_(fd) {}
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<std::unique_ptr<StoreUpload>> ResumeUpload(const std::string& key, int64_t size, PutMode mode,
                                                    const std::string& identity, int64_t part_size) override;
  std::string Location() const override { return "stdout"; }
  Result<void> Write(std::string_view bytes);

 private:
  const int fd_;
};

// All that came until the end, in a file without a name: copies read it in parts and, after an error, again.
// Its version is what it holds, so that a copy of the same bytes goes on where one was cut off.
class InputStore : public PipeStore {
 public:
  // `folder` is where the file is made; kUnavailable when it is full.
  static Result<std::unique_ptr<InputStore>> ReadAll(int fd, const std::string& folder,
                                                     const std::function<void(int64_t bytes)>& progress);
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  std::string Location() const override { return "stdin"; }

 private:
  InputStore(Fd file, StoredObjectInfo info) : file_(std::move(file)), info_(std::move(info)) {}
  const Fd file_;
  const StoredObjectInfo info_;
};

}  // namespace overcap
