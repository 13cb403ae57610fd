// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/event_log.h"

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

void AppendLine(const std::string& path, JsonWriter* json) {
  const auto file = PosixFiles().OpenAppend(path);
  if (file) (void)(*file)->Append(json->EndObject().Take() + "\n");
}

}  // namespace

void GroupEvents::Add(const char* event, const Fields& fields) {
  JsonWriter json;
  json.BeginObject().Field("time_us", clock_.WallUs()).Field("event", event);
  if (fields) fields(&json);
  AppendLine(path_, &json);
}

void GroupEvents::AddForJob(const char* event, const Fields& fields) {
  Add(event, fields);
  if (job_path_.empty()) return;
  JsonWriter json;
  json.BeginObject().Field("e", "group").Field("t", clock_.WallUs());
  json.Field("attempt", ParseInt(attempt_).value_or(0)).Field("node", ToUtf8(host_)).Field("event", event);
  if (fields) fields(&json);
  AppendLine(job_path_, &json);
}

}  // namespace overcap
