// SPDX-License-Identifier: Apache-2.0
#include "control/picture_json.h"

#include <algorithm>

#include "base/units.h"

namespace overcap {

void WritePictureAge(const ClusterPicture& picture, int64_t now_us, JsonWriter* json) {
  json->Field("taken", FormatTimeUtc(picture.taken_us));
  json->Field("age_s", static_cast<double>(std::max<int64_t>(0, now_us - picture.taken_us)) / 1e6);
  if (!picture.stale.empty()) json->Field("stale", picture.stale);
  if (!picture.notes.empty()) json->Field("notes", picture.notes);
}

void WriteGpus(const std::vector<TypedGpus>& gpus, JsonWriter* json) {
  json->BeginArray();
  for (const TypedGpus& kind : gpus) {
    json->BeginObject().Field("type", kind.type).Field("count", kind.count).EndObject();
  }
  json->EndArray();
}

}  // namespace overcap
