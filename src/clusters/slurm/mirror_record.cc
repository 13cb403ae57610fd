// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/mirror_record.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/json_writer.h"

namespace overcap {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kSkewUs = 1'000'000;
constexpr int64_t kLongestRest = 60'000'000;
constexpr int64_t kLatest = INT64_MAX / 4;  // times beyond are nonsense; sums of two stay numbers

using Json = nlohmann::json;

std::string Hex(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

// The object in the first line, when it is a whole line that we wrote about `of`; else null.
Json FirstLine(std::string_view head, std::string_view of) {
  const size_t end = head.substr(0, kMirrorHeaderMax).find('\n');
  if (end == std::string_view::npos || head[0] != '{') return nullptr;
  Json json = Json::parse(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
  if (!json.is_object() || json.value("overcap_mirror", Json()) != kVersion) return nullptr;
  return json.value("of", Json()) == of ? json : Json(nullptr);
}

std::optional<std::string> Text(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

std::optional<int64_t> Number(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_integer()) return std::nullopt;
  const auto number = it->get<int64_t>();
  if (number < 0 || number > kLatest) return std::nullopt;
  return number;
}

}  // namespace

std::string MirrorHeaderLine(MirrorHeader header, std::string_view text) {
  JsonWriter json;
  json.BeginObject().Field("overcap_mirror", kVersion).Field("of", header.of).Field("mark", header.mark);
  json.Field("taken_us", header.taken_us).Field("took_us", header.took_us);
  json.Field("bytes", text.size()).Field("crc32c", Hex(Crc32c(text))).EndObject();
  return json.Take() + "\n";
}

std::optional<MirrorHeader> ParseMirrorHeader(std::string_view head, std::string_view of) {
  const Json json = FirstLine(head, of);
  if (json.is_null()) return std::nullopt;
  const auto mark = Text(json, "mark"), crc = Text(json, "crc32c");
  const auto taken = Number(json, "taken_us"), took = Number(json, "took_us"), bytes = Number(json, "bytes");
  if (!mark || !crc || !taken || !took || !bytes) return std::nullopt;
  char* end = nullptr;
  const unsigned long value = std::strtoul(crc->c_str(), &end, 16);
  if (crc->size() != 8 || *end != '\0') return std::nullopt;
  return MirrorHeader{
      std::string(of), *mark, *taken, *took, static_cast<size_t>(*bytes), static_cast<uint32_t>(value)};
}

std::optional<std::string_view> MirrorBody(std::string_view file, const MirrorHeader& header) {
  const size_t end = file.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view body = file.substr(end + 1);
  if (body.size() != header.bytes || Crc32c(body) != header.crc) return std::nullopt;
  return body;
}

std::string MirrorFailureLine(const MirrorFailure& failure) {
  JsonWriter json;
  json.BeginObject().Field("overcap_mirror", kVersion).Field("of", failure.of);
  json.Field("tried_us", failure.tried_us).Field("took_us", failure.took_us);
  json.Field("code", ErrorCodeName(failure.error.code)).Field("message", failure.error.message);
  json.Field("hint", failure.error.hint).EndObject();
  return json.Take() + "\n";
}

std::optional<MirrorFailure> ParseMirrorFailure(std::string_view file, std::string_view of) {
  const Json json = FirstLine(file, of);
  if (json.is_null()) return std::nullopt;
  const auto code = Text(json, "code"), message = Text(json, "message"), hint = Text(json, "hint");
  const auto tried = Number(json, "tried_us"), took = Number(json, "took_us");
  if (!code || !message || !hint || !tried || !took) return std::nullopt;
  return MirrorFailure{std::string(of), *tried, *took, Error{ErrorCodeFromName(*code), *message, *hint}};
}

std::optional<int64_t> MirrorAge(int64_t now_us, int64_t then_us) {
  if (then_us > now_us + kSkewUs) return std::nullopt;
  return std::max<int64_t>(0, now_us - then_us);
}

bool MirrorLater(int64_t now_us, int64_t a_us, int64_t b_us) {
  const bool known = MirrorAge(now_us, a_us).has_value();
  if (known != MirrorAge(now_us, b_us).has_value()) return known;
  return a_us > b_us;
}

bool MirrorFailureCounts(int64_t now_us, const MirrorHeader* text, const MirrorFailure* failure) {
  return failure != nullptr && (text == nullptr || !MirrorLater(now_us, text->taken_us, failure->tried_us));
}

bool MirrorServes(int64_t now_us, const MirrorHeader* text, const MirrorFailure* failure,
                  const MirrorPatience& patience) {
  if (text != nullptr) {
    const int64_t rest = std::min(2 * text->took_us, kLongestRest);
    const auto age = MirrorAge(now_us, text->taken_us);
    if (age && *age < std::max({patience.max_age_us, patience.min_interval_us, rest})) return true;
  }
  if (!MirrorFailureCounts(now_us, text, failure)) return false;
  const auto age = MirrorAge(now_us, failure->tried_us + failure->took_us);
  return age && *age < patience.min_interval_us;
}

}  // namespace overcap
