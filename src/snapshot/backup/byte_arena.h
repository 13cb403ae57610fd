// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace overcap {

// Keeps copies of many short byte strings until it goes. One thread at a time.
class ByteArena {
 public:
  std::string_view Keep(std::string_view bytes) {
    if (bytes.size() > left_) Grow(bytes.size());
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    const std::string_view kept(at_, bytes.size());
    at_ += bytes.size();
    left_ -= bytes.size();
    return kept;
  }

 private:
  static constexpr size_t kBlock = 65536;

  void Grow(size_t needed) {
    left_ = std::max(kBlock, needed);
    blocks_.emplace_back(new char[left_]);
    at_ = blocks_.back().get();
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace overcap
