// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace overcap {

// What object stores tell of a content: against damage on the way, not against people.
class Md5 {
 public:
  Md5();
  Md5(Md5&&) noexcept;
  Md5& operator=(Md5&&) noexcept;
  ~Md5();
  void Add(std::string_view bytes);
  // Of all so far, once: 16 bytes, or 32 digits.
  std::string Bytes();
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Md5Hex(std::string_view bytes);

}  // namespace overcap
