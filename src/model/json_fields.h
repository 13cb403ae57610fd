// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a JSON object that nobody vouches for: wrong types and numbers out of range become one
// error, nothing throws. Strings that are no UTF-8 travel as {"hex": "..."} and so keep every byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_writer.h"
#include "base/result.h"

namespace overcap {

// `what` ("job spec") names the text in the error. kCorrupt when it is no JSON object.
Result<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view what);

// Every Read() leaves `value` as it is when the field is absent or null; the first bad field is what Check()
// reports.
class FieldReader {
 public:
  FieldReader(const nlohmann::json& object, std::string_view what) : object_(object), what_(what) {}

  void Read(std::string_view key, std::string* value);
  void Read(std::string_view key, bool* value);
  void Read(std::string_view key, int* value);
  void Read(std::string_view key, int64_t* value);
  void Read(std::string_view key, std::vector<std::string>* values);
  void Read(std::string_view key, std::vector<int>* values);

  // The field's value; nullptr when absent, null or (then Check() fails) not an array or object.
  const nlohmann::json* Array(std::string_view key);
  const nlohmann::json* Object(std::string_view key);

  void Bad(std::string_view key, std::string_view expected);  // "job spec: 'nodes' is no integer"
  void Take(Result<void> result);                             // the error of a nested reader
  Result<void> Check() const;

 private:
  const nlohmann::json* Find(std::string_view key) const;

  const nlohmann::json& object_;
  std::string_view what_;
  std::optional<Error> error_;
};

// A JSON string, or {"hex": "..."} when `bytes` is no valid UTF-8.
void WriteBytes(JsonWriter* out, std::string_view bytes);
void WriteBytes(JsonWriter* out, std::string_view key, std::string_view bytes);

}  // namespace overcap
