// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/event_log.h"

#include "sys/posix_files.h"

namespace overcap {

void GroupEvents::Add(const char* event, const std::function<void(JsonWriter*)>& fields) {
  JsonWriter json;
  json.BeginObject().Field("time_us", clock_.WallUs()).Field("event", event);
  if (fields) fields(&json);
  const auto file = PosixFiles().OpenAppend(path_);
  if (file) (void)(*file)->Append(json.EndObject().Take() + "\n");
}

}  // namespace overcap
