// SPDX-License-Identifier: Apache-2.0
#include "model/json_fields.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/request_limits.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> BytesOfHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexDigit(hex[i]), low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::optional<std::string> BytesOf(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (!value.is_object()) return std::nullopt;
  const auto hex = value.find("hex");
  if (hex == value.end() || !hex->is_string()) return std::nullopt;
  return BytesOfHex(hex->get_ref<const std::string&>());
}

std::optional<int64_t> IntegerOf(const Json& value, int64_t min, int64_t max) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(max)) return std::nullopt;
  const auto number = value.get<int64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

std::optional<int> IntOf(const Json& value) {
  const auto number = IntegerOf(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int64_t> Int64Of(const Json& value) {
  return IntegerOf(value, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

// Whether the text has at most this many opening brackets, those in strings included.
bool HasAtMostBrackets(std::string_view text, int most) {
  int count = 0;
  for (const char bracket : {'{', '['}) {
    for (size_t at = 0; (at = text.find(bracket, at)) != text.npos; ++at) {
      if (++count > most) return false;
    }
  }
  return true;
}

// Looks at the text alone: text that is nested too deep must not become a tree, since walking trees recurses.
bool IsNestedDeeperThan(std::string_view text, int most) {
  if (HasAtMostBrackets(text, most)) return false;  // nearly always, and much faster than what follows
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Json> ParseJsonObject(std::string_view text, std::string_view what) {
  if (IsNestedDeeperThan(text, kMaxJsonDepth))
    return Fail(ErrorCode::kCorrupt, StrCat(what, " is nested more than ", kMaxJsonDepth, " levels deep"));
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return Fail(ErrorCode::kCorrupt, StrCat(what, " is no JSON"));
  if (!value.is_object()) return Fail(ErrorCode::kCorrupt, StrCat(what, " is no JSON object"));
  return value;
}

const Json* FieldReader::Find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void FieldReader::Bad(std::string_view key, std::string_view expected) {
  if (!error_) error_ = Error{ErrorCode::kCorrupt, StrCat(what_, ": '", key, "' is no ", expected), {}};
}

void FieldReader::Take(Result<void> result) {
  if (!result && !error_) error_ = std::move(result).error();
}

Result<void> FieldReader::Check() const {
  if (error_) return Fail(*error_);
  return {};
}

void FieldReader::Read(std::string_view key, std::string* value) {
  const Json* field = Find(key);
  if (field == nullptr) return;
  auto bytes = BytesOf(*field);
  if (!bytes) return Bad(key, "string");
  *value = std::move(*bytes);
}

void FieldReader::Read(std::string_view key, bool* value) {
  const Json* field = Find(key);
  if (field == nullptr) return;
  if (!field->is_boolean()) return Bad(key, "boolean");
  *value = field->get<bool>();
}

void FieldReader::Read(std::string_view key, int* value) {
  const Json* field = Find(key);
  if (field == nullptr) return;
  const auto number = IntOf(*field);
  if (!number) return Bad(key, "integer of 32 bits");
  *value = *number;
}

void FieldReader::Read(std::string_view key, int64_t* value) {
  const Json* field = Find(key);
  if (field == nullptr) return;
  const auto number = Int64Of(*field);
  if (!number) return Bad(key, "integer of 64 bits");
  *value = *number;
}

void FieldReader::Read(std::string_view key, std::vector<std::string>* values) {
  const Json* field = Array(key);
  if (field == nullptr) return;
  std::vector<std::string> read;
  for (const Json& item : *field) {
    auto bytes = BytesOf(item);
    if (!bytes) return Bad(key, "array of strings");
    read.push_back(std::move(*bytes));
  }
  *values = std::move(read);
}

void FieldReader::Read(std::string_view key, std::vector<int>* values) {
  const Json* field = Array(key);
  if (field == nullptr) return;
  std::vector<int> read;
  for (const Json& item : *field) {
    const auto number = IntOf(item);
    if (!number) return Bad(key, "array of integers");
    read.push_back(*number);
  }
  *values = std::move(read);
}

const Json* FieldReader::Array(std::string_view key) {
  const Json* field = Find(key);
  if (field == nullptr || field->is_array()) return field;
  Bad(key, "array");
  return nullptr;
}

const Json* FieldReader::Object(std::string_view key) {
  const Json* field = Find(key);
  if (field == nullptr || field->is_object()) return field;
  Bad(key, "object");
  return nullptr;
}

void WriteBytes(JsonWriter* out, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    out->String(bytes);
    return;
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kHex[byte >> 4], kHex[byte & 15]};
  }
  out->BeginObject().Field("hex", hex).EndObject();
}

void WriteBytes(JsonWriter* out, std::string_view key, std::string_view bytes) {
  out->Key(key);
  WriteBytes(out, bytes);
}

}  // namespace overcap
