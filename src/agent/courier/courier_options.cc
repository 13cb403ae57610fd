// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/courier_options.h"

#include "base/text.h"

namespace overcap {
namespace {

Result<void> SetOption(const std::string& flag, const std::string& value, CourierOptions* options) {
  if (flag == "--job" || flag == "--store") {
    if (!value.starts_with('/'))
      return Fail(ErrorCode::kUsage, StrCat(flag, ": '", value, "' is no absolute path"));
    (flag == "--job" ? options->job_dir : options->store_dir) = value;
    return {};
  }
  if (flag == "--via") {
    OC_TRY(via, JobStoreFromJson(value));
    options->via = std::move(via);
    return {};
  }
  if (flag == "--node") {
    options->node = value == "yes";
    return {};
  }
  const auto bytes = ParseInt(value);
  if (flag != "--backlog" || !bytes || *bytes < 0)
    return Fail(ErrorCode::kUsage, StrCat("agent courier: unknown argument '", flag, "'"));
  options->backlog = *bytes;
  return {};
}

}  // namespace

std::vector<std::string> CourierWords(const CourierOptions& options) {
  return {"courier",
          "--job",
          options.job_dir,
          "--store",
          options.store_dir,
          "--via",
          JobStoreToJson(options.via),
          "--node",
          options.node ? "yes" : "no",
          "--backlog",
          StrCat(options.backlog)};
}

Result<CourierOptions> ParseCourierOptions(const std::vector<std::string>& words) {
  CourierOptions options;
  if (words.size() % 2 != 0) return Fail(ErrorCode::kUsage, "agent courier: a value is missing");
  for (size_t i = 0; i < words.size(); i += 2) OC_TRY_VOID(SetOption(words[i], words[i + 1], &options));
  if (options.job_dir.empty() || options.store_dir.empty() || options.via.empty())
    return Fail(ErrorCode::kUsage, "agent courier takes --job DIR --store DIR --via STORE");
  return options;
}

}  // namespace overcap
