// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace overcap {
namespace {

bool IsPlainAscii(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F || c == '"' || c == '\\') return false;
  }
  return true;
}

void AppendEscaped(std::string* out, unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\t':
      out->append("\\t");
      return;
    case '\r':
      out->append("\\r");
      return;
    default:
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
  }
}

// Control bytes are escaped (and so survive), valid UTF-8 is kept, other bytes become U+FFFD.
void AppendJsonEscaped(std::string* out, std::string_view value) {
  while (!value.empty()) {
    const auto byte = static_cast<unsigned char>(value[0]);
    const size_t length = Utf8Length(value);
    if (length == 1 && (byte < 0x20 || byte == 0x7F || byte == '"' || byte == '\\')) {
      AppendEscaped(out, byte);
    } else if (length == 0) {
      out->append("\xEF\xBF\xBD");
    } else {
      out->append(value.substr(0, length));
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
}

}  // namespace

void JsonWriter::Separate() {
  if (need_comma_) out_.push_back(',');
  need_comma_ = true;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  out_.push_back(bracket);
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  out_.push_back(bracket);
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  String(key);
  out_.push_back(':');
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  out_.push_back('"');
  if (IsPlainAscii(value)) {
    out_.append(value);
  } else {
    AppendJsonEscaped(&out_, value);
  }
  out_.push_back('"');
  return *this;
}

JsonWriter& JsonWriter::Int(long long value) {
  Separate();
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out_.append(buffer, end);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out_.append(buffer, end);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  out_.append(value ? "true" : "false");
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  out_.append("null");
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_.append(json);
  return *this;
}

JsonWriter& JsonWriter::Field(std::string_view key, const std::vector<std::string>& values) {
  Key(key).BeginArray();
  for (const std::string& value : values) String(value);
  return EndArray();
}

}  // namespace overcap
