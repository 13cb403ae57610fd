// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_handle.h"

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap {

Result<bool> AgreeOnHandle(const std::string& job_dir, const std::string& cluster, int64_t slurm_id,
                           Files* files) {
  const std::string path = job_dir + "/handle.json";
  JsonWriter out;
  out.BeginObject().Field("driver", "slurm").Field("cluster", cluster).Field("slurm_id", slurm_id);
  const Result<void> made =
      files->CreateExclusive(path, out.Field("made_by", "agent").EndObject().Take() + "\n");
  if (made) return true;
  if (made.error().code != ErrorCode::kConflict) return Fail(made.error());
  OC_TRY(text, files->Read(path));
  OC_TRY(object, ParseJsonObject(text, path));
  FieldReader reader(object, path);
  int64_t known = 0;
  reader.Read("slurm_id", &known);
  OC_TRY_VOID(reader.Check());
  return known == slurm_id;
}

}  // namespace overcap
