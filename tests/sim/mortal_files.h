// SPDX-License-Identifier: Apache-2.0
// Files that die under one process while the others go on: the changes of a process that was killed do
// nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "sys/files.h"

namespace overcap {

// Shared by everything that one simulated process does to the world.
class Life {
 public:
  // So many more changes are made, then the process is dead.
  void DieAfter(int changes) { left_ = changes; }
  void Kill() { left_ = 0; }
  void Revive() { left_.reset(); }
  bool Dead() const { return left_ && *left_ <= 0; }
  // True when the change may be made.
  bool Spend() {
    if (!left_) return true;
    if (*left_ <= 0) return false;
    --*left_;
    return true;
  }

 private:
  std::optional<int> left_;
};

inline tl::unexpected<Error> DeadError() {
  return Fail(ErrorCode::kInternal, "the process is dead");
}

class MortalAppendFile : public AppendFile {
 public:
  MortalAppendFile(std::unique_ptr<AppendFile> file, Life& life) : file_(std::move(file)), life_(life) {}
  Result<void> Append(std::string_view data) override { return life_.Spend() ? file_->Append(data) : Dead(); }
  Result<void> Sync() override { return life_.Spend() ? file_->Sync() : Dead(); }
  Result<void> TruncateTo(int64_t size) override { return life_.Spend() ? file_->TruncateTo(size) : Dead(); }
  int64_t Size() const override { return file_->Size(); }
  Result<bool> Reserve(int64_t bytes) override {
    if (!life_.Spend()) return DeadError();
    return file_->Reserve(bytes);
  }

 private:
  static Result<void> Dead() { return DeadError(); }
  std::unique_ptr<AppendFile> file_;
  Life& life_;
};

class MortalFiles : public Files {
 public:
  MortalFiles(Files& files, Life& life) : files_(files), life_(life) {}
  Result<std::string> Read(const std::string& path) const override { return files_.Read(path); }
  Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const override {
    return files_.ReadRange(path, offset, limit);
  }
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override {
    if (!life_.Spend()) return DeadError();
    OC_TRY(file, files_.OpenAppend(path));
    return std::unique_ptr<AppendFile>(std::make_unique<MortalAppendFile>(std::move(file), life_));
  }
  Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) override {
    return life_.Spend() ? files_.WriteAtomic(path, data, durable) : Dead();
  }
  Result<void> CreateExclusive(const std::string& path, std::string_view data) override {
    return life_.Spend() ? files_.CreateExclusive(path, data) : Dead();
  }
  Result<void> MakeFolders(const std::string& path) override {
    return life_.Spend() ? files_.MakeFolders(path) : Dead();
  }
  Result<void> Rename(const std::string& from, const std::string& to) override {
    return life_.Spend() ? files_.Rename(from, to) : Dead();
  }
  Result<void> SyncFolder(const std::string& path) override {
    return life_.Spend() ? files_.SyncFolder(path) : Dead();
  }
  Result<void> Remove(const std::string& path) override {
    return life_.Spend() ? files_.Remove(path) : Dead();
  }
  Result<void> RemoveTree(const std::string& path) override {
    return life_.Spend() ? files_.RemoveTree(path) : Dead();
  }
  bool Exists(const std::string& path) const override { return files_.Exists(path); }
  Result<std::vector<std::string>> List(const std::string& path) const override { return files_.List(path); }

 private:
  static Result<void> Dead() { return DeadError(); }
  Files& files_;
  Life& life_;
};

}  // namespace overcap
