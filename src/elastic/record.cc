// SPDX-License-Identifier: Apache-2.0
#include "elastic/record.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap::elastic {
namespace {

constexpr std::string_view kRecordWhat = "record of an elastic launch";
constexpr int kFormat = 1;

}  // namespace

std::string RecordJson(const ElasticRecord& record) {
  JsonWriter json;
  json.BeginObject().Field("format", kFormat).Field("term", record.term).Field("epoch", record.epoch);
  json.Field("restarts", record.restarts).Field("nodes", record.nodes).Field("terms", record.terms);
  if (record.ended) {
    json.Key("ended").BeginObject().Field("status", record.ended->status);
    json.Field("message", record.ended->message).EndObject();
  }
  return json.EndObject().Take();
}

Result<ElasticRecord> ParseRecord(std::string_view text) {
  OC_TRY(json, ParseJsonObject(text, kRecordWhat));
  ElasticRecord record;
  int format = 0;
  FieldReader reader(json, kRecordWhat);
  reader.Read("format", &format);
  reader.Read("term", &record.term);
  reader.Read("epoch", &record.epoch);
  reader.Read("restarts", &record.restarts);
  reader.Read("nodes", &record.nodes);
  reader.Read("terms", &record.terms);
  if (format != kFormat) reader.Bad("format", "1");
  if (record.epoch < 0 || record.term < 0 || record.restarts < 0) reader.Bad("epoch", "a count");
  const nlohmann::json* ended = reader.Object("ended");
  OC_TRY_VOID(reader.Check());
  if (ended != nullptr) {
    FieldReader end(*ended, kRecordWhat);
    ElasticRecord::Ended read;
    end.Read("status", &read.status);
    end.Read("message", &read.message);
    record.ended = std::move(read);
    OC_TRY_VOID(end.Check());
  }
  return record;
}

}  // namespace overcap::elastic
