// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/presence_record.h"

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "stores/hashed_line.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

Result<Json> Checked(std::string_view bytes, std::string_view key) {
  if (const auto line = CheckedLine(bytes)) {
    Json json = Json::parse(*line, nullptr, false);
    if (json.is_object()) return json;
  }
  return Fail(ErrorCode::kCorrupt, StrCat("object ", Quoted(key, 120), " is damaged"));
}

std::string TextOf(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

int64_t NumberOf(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

std::vector<std::string> TextsOf(const Json& json, const char* name) {
  std::vector<std::string> texts;
  const auto it = json.find(name);
  if (it == json.end() || !it->is_array()) return texts;
  for (const Json& item : *it) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

}  // namespace

std::string EncodeWriterRecord(const WriterRecord& record) {
  JsonWriter json;
  json.BeginObject()
      .Field("host", record.process.host)
      .Field("pid", record.process.pid)
      .Field("boot", record.process.boot)
      .Field("pid_space", record.process.pid_space)
      .Field("started", record.process.started)
      .Field("began_us", record.began_us)
      .Field("beat", record.beat)
      .Field("prune", record.prune)
      .Field("knows", record.knows)
      .EndObject();
  return WithHashLine(json.Take());
}

std::string EncodeCondemnedRecord(const CondemnedRecord& record) {
  JsonWriter json;
  json.BeginObject().Field("began_us", record.began_us).Key("packs").BeginArray();
  for (const Digest& id : record.packs) json.String(id.Hex());
  json.EndArray().EndObject();
  return WithHashLine(json.Take());
}

Result<WriterRecord> DecodeWriterRecord(std::string_view bytes, std::string_view key) {
  OC_TRY(json, Checked(bytes, key));
  WriterRecord record;
  record.process = {.host = TextOf(json, "host"),
                    .pid = NumberOf(json, "pid"),
                    .boot = TextOf(json, "boot"),
                    .pid_space = TextOf(json, "pid_space"),
                    .started = NumberOf(json, "started")};
  record.began_us = NumberOf(json, "began_us");
  record.beat = NumberOf(json, "beat");
  const auto prune = json.find("prune");
  record.prune = prune != json.end() && *prune == true;
  record.knows = TextsOf(json, "knows");
  return record;
}

Result<CondemnedRecord> DecodeCondemnedRecord(std::string_view bytes, std::string_view key) {
  OC_TRY(json, Checked(bytes, key));
  CondemnedRecord record;
  record.began_us = NumberOf(json, "began_us");
  for (const std::string& hex : TextsOf(json, "packs")) {
    const std::optional<Digest> id = Digest::FromHex(hex);
    if (!id) return Fail(ErrorCode::kCorrupt, StrCat("object ", Quoted(key, 120), " names no packs"));
    record.packs.push_back(*id);
  }
  return record;
}

std::string DescribeWriter(const WriterRecord& record) {
  return StrCat(record.process.host.empty() ? "unknown host" : record.process.host, ", pid ",
                record.process.pid);
}

}  // namespace overcap
