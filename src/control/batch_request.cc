// SPDX-License-Identifier: Apache-2.0
#include "control/batch_request.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "control/batch_directives.h"

namespace overcap {
namespace {

constexpr size_t kLongestScript = 4 << 20;  // Slurm's own limit

// The file's beginning up to Slurm's limit; "" when it cannot be read or is no script at all.
std::string ReadScript(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::min<std::uintmax_t>(std::filesystem::file_size(path, error), kLongestScript);
  std::ifstream file(path, std::ios::binary);
  if (error || file.get() != '#' || file.get() != '!') return {};
  std::string text(size, '\0');
  file.seekg(0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

// Where the script is for a command that runs in the workdir.
std::string FromWorkdir(const FoundScript& found, const JobRequest& request) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(request.folder).lexically_normal();
  const fs::path workdir = (folder / request.workdir).lexically_normal();
  const std::string inner = workdir.lexically_relative(folder).string();
  const bool inside = !inner.empty() && inner != ".." && !inner.starts_with("../");
  if (!inside) return (folder / found.path).string();
  const std::string path =
      fs::path(found.path).lexically_relative(inner == "." ? fs::path() : fs::path(inner)).string();
  return path.empty() ? found.path : path;
}

}  // namespace

Result<std::optional<FoundScript>> FindBatchScript(const JobRequest& request) {
  namespace fs = std::filesystem;
  if (request.command.empty()) return std::optional<FoundScript>();
  const std::string& name = request.command[0];
  const fs::path folder = fs::path(request.folder).lexically_normal();
  const fs::path path = (folder / name).lexically_normal();
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::optional<FoundScript>();
  FoundScript found{name, path.lexically_relative(folder).string(), ReadScript(path)};
  if (!IsBatchScript(found.text)) return std::optional<FoundScript>();
  if (found.text.size() == kLongestScript)
    return Fail(ErrorCode::kUsage, StrCat("script '", ToUtf8(name), "' is larger than 4 MiB"));
  if (found.path.starts_with("../")) {
    return Fail(
        ErrorCode::kUsage,
        StrCat("script '", ToUtf8(name), "' is outside of the current folder, whose code the job gets"),
        StrCat("cd to the folder of the script, or run it as it is: overcap submit bash ", ShellQuote(name)));
  }
  return std::optional(std::move(found));
}

Result<void> ApplyBatchScript(const FoundScript& found, const Capabilities& can, JobRequest* request,
                              std::vector<Dependency>* after) {
  OC_TRY(script, ParseBatchScript(found.text, found.name));
  BatchDirectives directives(found.name, can);
  for (const BatchOption& option : script.options) OC_TRY_VOID(directives.Take(option));
  directives.Complete(request);
  after->insert(after->end(), directives.after().begin(), directives.after().end());
  request->batch_script = found.path;
  std::vector<std::string> command = std::move(script.interpreter);
  command.push_back(FromWorkdir(found, *request));
  command.insert(command.end(), request->command.begin() + 1, request->command.end());
  request->command = std::move(command);
  return {};
}

}  // namespace overcap
