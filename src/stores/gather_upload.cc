// SPDX-License-Identifier: Apache-2.0
#include "stores/gather_upload.h"

#include <map>
#include <mutex>
#include <vector>

#include "base/text.h"
#include "stores/object_size.h"

namespace overcap {
namespace {

constexpr int64_t kPartSize = 4 << 20;

class GatheringUpload : public StoreUpload {
 public:
  GatheringUpload(Store* store, std::string key, int64_t size, PutMode mode)
      : store_(store), key_(std::move(key)), size_(size), mode_(mode) {}

  int64_t PartSize() const override { return kPartSize; }

  Result<void> Part(int64_t index, std::string_view bytes) override {
    OC_TRY_VOID(ValidPart(key_, size_, kPartSize, index, bytes.size()));
    const std::lock_guard lock(mutex_);
    parts_[index] = std::string(bytes);
    return {};
  }

  Result<void> Finish() override {
    const std::lock_guard lock(mutex_);
    if (static_cast<int64_t>(parts_.size()) != PartCount(size_, kPartSize))
      return Fail(ErrorCode::kUsage, StrCat("parts of ", Quoted(key_, 200), " are missing"));
    std::vector<std::string_view> pieces;
    for (const auto& [index, bytes] : parts_) pieces.emplace_back(bytes);
    return store_->Put(key_, pieces, mode_);
  }

 private:
  Store* const store_;
  const std::string key_;
  const int64_t size_;
  const PutMode mode_;
  std::mutex mutex_;  // guards `parts_`
  std::map<int64_t, std::string> parts_;
};

}  // namespace

Result<std::unique_ptr<StoreUpload>> GatherUpload(Store* store, const std::string& key, int64_t size,
                                                  PutMode mode) {
  OC_TRY_VOID(CheckObjectSize(key, size));
  return std::make_unique<GatheringUpload>(store, key, size, mode);
}

}  // namespace overcap
