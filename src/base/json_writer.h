// SPDX-License-Identifier: Apache-2.0
// Writes JSON text straight into a string: no tree, no copies; commas and escapes are its business.
// Reading JSON is nlohmann's (only in .cc files, its header is heavy).
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);

  JsonWriter& String(std::string_view value);  // bytes that are not UTF-8 become U+FFFD
  JsonWriter& Int(long long value);
  JsonWriter& Double(double value);  // not finite: null
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // one JSON value, already text

  // Key and value at once.
  JsonWriter& Field(std::string_view key, std::string_view value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, const char* value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, bool value) { return Key(key).Bool(value); }
  template <std::integral N>
  requires(!std::same_as<N, bool>) JsonWriter& Field(std::string_view key, N value) {
    return Key(key).Int(static_cast<long long>(value));
  }
  JsonWriter& Field(std::string_view key, double value) { return Key(key).Double(value); }
  JsonWriter& Field(std::string_view key, const std::vector<std::string>& values);

  const std::string& Text() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();

  std::string out_;
  bool need_comma_ = false;
};

}  // namespace overcap
