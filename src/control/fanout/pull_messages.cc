// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/pull_messages.h"

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap::fanout {
namespace {

constexpr std::string_view kWhat = "message of a fan-out";

std::string Framed(char type, JsonWriter* json) {
  json->EndObject();
  return StrCat(type, json->Take());
}

void ReadCount(FieldReader* reader, std::string_view key, int64_t* value) {
  reader->Read(key, value);
  if (*value < 0) reader->Bad(key, "number in its range");
}

Result<ListedObject> DecodeListed(const nlohmann::json& object) {
  if (!object.is_object()) return Fail(ErrorCode::kCorrupt, "a listing of a fan-out holds no object");
  ListedObject listed;
  FieldReader reader(object, kWhat);
  reader.Read("key", &listed.key);
  ReadCount(&reader, "size", &listed.size);
  reader.Read("modified_us", &listed.modified_us);
  reader.Read("version", &listed.version);
  reader.Read("md5", &listed.md5);
  OC_TRY_VOID(reader.Check());
  return listed;
}

}  // namespace

std::string EncodeOne(const Listing& m) {
  JsonWriter json;
  json.BeginObject().Key("objects").BeginArray();
  for (const ListedObject& object : m.objects) {
    json.BeginObject();
    WriteBytes(&json, "key", object.key);
    json.Field("size", object.size).Field("modified_us", object.modified_us);
    WriteBytes(&json, "version", object.version);
    WriteBytes(&json, "md5", object.md5);
    json.EndObject();
  }
  json.EndArray();
  return Framed('L', &json);
}

std::string EncodeOne(const Pull& m) {
  JsonWriter json;
  json.BeginObject().Field("protocol", m.protocol);
  WriteBytes(&json, "target", m.target);
  json.Field("force", m.force);
  WriteBytes(&json, "location", m.location);
  WriteBytes(&json, "ca", m.ca);
  return Framed('T', &json);
}

std::string EncodeOne(const Where& m) {
  JsonWriter json;
  json.BeginObject().Field("request", m.request);
  WriteBytes(&json, "url", m.url);
  WriteBytes(&json, "error", m.error);
  return Framed('W', &json);
}

std::string EncodeOne(const Question& m) {
  JsonWriter json;
  json.BeginObject().Field("request", m.request);
  WriteBytes(&json, "key", m.key);
  return Framed('Q', &json);
}

std::string EncodeOne(const Known& m) {
  JsonWriter json;
  json.BeginObject().Field("tree", m.tree).Field("files", m.files).Field("bytes", m.bytes);
  json.Field("copied", m.copied).Field("copied_bytes", m.copied_bytes);
  return Framed('K', &json);
}

Result<Listing> DecodeListing(const nlohmann::json& object) {
  Listing m;
  FieldReader reader(object, kWhat);
  const nlohmann::json* objects = reader.Array("objects");
  OC_TRY_VOID(reader.Check());
  if (objects == nullptr) return m;
  for (const nlohmann::json& each : *objects) {
    OC_TRY(listed, DecodeListed(each));
    m.objects.push_back(std::move(listed));
  }
  return m;
}

Result<Pull> DecodePull(const nlohmann::json& object) {
  Pull m;
  FieldReader reader(object, kWhat);
  reader.Read("protocol", &m.protocol);
  reader.Read("target", &m.target);
  reader.Read("force", &m.force);
  reader.Read("location", &m.location);
  reader.Read("ca", &m.ca);
  OC_TRY_VOID(reader.Check());
  return m;
}

Result<Where> DecodeWhere(const nlohmann::json& object) {
  Where m;
  FieldReader reader(object, kWhat);
  reader.Read("request", &m.request);
  reader.Read("url", &m.url);
  reader.Read("error", &m.error);
  OC_TRY_VOID(reader.Check());
  return m;
}

Result<Question> DecodeQuestion(const nlohmann::json& object) {
  Question m;
  FieldReader reader(object, kWhat);
  reader.Read("request", &m.request);
  reader.Read("key", &m.key);
  OC_TRY_VOID(reader.Check());
  return m;
}

Result<Known> DecodeKnown(const nlohmann::json& object) {
  Known m;
  FieldReader reader(object, kWhat);
  reader.Read("tree", &m.tree);
  ReadCount(&reader, "files", &m.files);
  ReadCount(&reader, "bytes", &m.bytes);
  ReadCount(&reader, "copied", &m.copied);
  ReadCount(&reader, "copied_bytes", &m.copied_bytes);
  OC_TRY_VOID(reader.Check());
  return m;
}

}  // namespace overcap::fanout
