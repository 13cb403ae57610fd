// SPDX-License-Identifier: Apache-2.0
// What all that is told about a cluster's picture begins with, as JSON.
#pragma once

#include <cstdint>

#include "base/json_writer.h"
#include "model/cluster_picture.h"

namespace overcap {

// Fields `taken`, `age_s`, `stale` (only when it is) and `notes` of an object that is open.
void WritePictureAge(const ClusterPicture& picture, int64_t now_us, JsonWriter* json);

// [{"type": "a40", "count": 4}]
void WriteGpus(const std::vector<TypedGpus>& gpus, JsonWriter* json);

}  // namespace overcap
