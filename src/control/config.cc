// SPDX-License-Identifier: Apache-2.0
#include "control/config.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/config_schema.h"
#include "control/implied_clusters.h"

namespace overcap {
namespace {

constexpr std::string_view kName = "overcap.yaml";
constexpr size_t kMaxBytes = 1 << 20;  // a configuration is written by hand

std::string EnvOr(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(otherwise);
}

bool Exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

// The nearest overcap.yaml in `folder` or above it, or "".
std::string FindUpwards(std::string folder) {
  while (!folder.empty()) {
    std::string path = StrCat(folder == "/" ? "" : folder, "/", kName);
    if (Exists(path)) return path;
    if (folder == "/") break;
    const size_t slash = folder.find_last_of('/');
    if (slash == std::string::npos) break;
    folder.resize(std::max<size_t>(1, slash));
  }
  return {};
}

Result<std::string> ReadAll(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Fail(ErrnoError(errno, StrCat("cannot read '", path, "'")));
  std::string text;
  size_t size = 0;
  ssize_t got = 1;
  while (got > 0 && size <= kMaxBytes) {
    // A whole mebibyte made ready would take as long as all the rest of reading.
    if (size == text.size()) text.resize(std::min(kMaxBytes + 1, 2 * size + 4096));
    got = read(file, text.data() + size, text.size() - size);
    if (got > 0) size += static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) got = 1;
  }
  const int error = errno;
  close(file);
  if (got < 0) return Fail(ErrnoError(error, StrCat("cannot read '", path, "'")));
  if (size > kMaxBytes)
    return Fail(ErrorCode::kUsage, StrCat("'", path, "' is larger than 1 MiB: no configuration"));
  text.resize(size);
  return text;
}

// "overcap.yaml" instead of its whole path when it stands in the current folder.
std::string ShortName(const std::string& path, const std::string& folder) {
  const bool here = !folder.empty() && path.starts_with(folder + "/") &&
                    path.find('/', folder.size() + 1) == std::string::npos;
  return here ? path.substr(folder.size() + 1) : path;
}

Result<void> CheckDefaultCluster(const Config& config) {
  if (config.clusters.contains(config.cluster)) return {};
  const auto setting = config.settings.find("cluster");
  std::vector<std::string> names;
  for (const auto& [name, unused] : config.clusters) names.push_back(name);
  const std::string where =
      setting == config.settings.end() ? "" : StrCat(setting->second.file, ":", setting->second.line, ": ");
  return Fail(ErrorCode::kUsage, StrCat(where, "'clusters' has no '", config.cluster, "'"),
              StrCat("there is: ", Join(names, ", ")));
}

}  // namespace

ConfigPlaces DefaultConfigPlaces(std::string folder) {
  ConfigPlaces places;
  places.folder = std::move(folder);
  places.variables = Variables::OfThisProcess();
  places.named_file = EnvOr("OVERCAP_CONFIG", "");
  const std::string home = EnvOr("HOME", "");
  const std::string base = EnvOr("XDG_CONFIG_HOME", home.empty() ? "" : home + "/.config");
  if (!base.empty()) places.user_file = StrCat(base, "/overcap/", kName);
  return places;
}

Result<std::vector<std::string>> FindConfigFiles(const ConfigPlaces& places) {
  std::vector<std::string> files;
  if (places.named_file.empty()) {
    files.push_back(FindUpwards(places.folder));
  } else if (Exists(places.named_file)) {
    files.push_back(places.named_file);
  } else {
    return Fail(ErrorCode::kNotFound, StrCat("no configuration file '", places.named_file, "'"),
                "it is named by --config or OVERCAP_CONFIG");
  }
  for (const std::string& file : {places.user_file, places.system_file}) {
    if (!file.empty() && Exists(file)) files.push_back(file);
  }
  std::vector<std::string> unique;
  for (std::string& file : files) {
    if (!file.empty() && std::ranges::find(unique, file) == unique.end()) unique.push_back(std::move(file));
  }
  return unique;
}

Result<Config> LoadConfig(const ConfigPlaces& places) {
  OC_TRY(files, FindConfigFiles(places));
  Config config;
  for (const std::string& file : files) {
    OC_TRY(text, ReadAll(file));
    const std::string shown = ShortName(file, places.folder);
    OC_TRY_VOID(ApplyConfigText(text, shown, &config));
    for (auto& [path, setting] : config.settings) {
      if (setting.file == shown) setting.file = file;
    }
    config.files.push_back(file);
  }
  OC_TRY_VOID(CheckClusterSettings(config));
  AddImpliedClusters(places.variables, &config);
  if (!files.empty()) OC_TRY_VOID(CheckDefaultCluster(config));
  return config;
}

JobDefaults DefaultsFor(const Config& config, const std::string& cluster) {
  JobDefaults defaults = config.defaults;
  const auto found = config.clusters.find(cluster);
  if (found == config.clusters.end()) return defaults;
  const JobDefaults& own = found->second.defaults;
  const auto take = [&](std::string_view key, auto member) {
    if (config.settings.contains(StrCat("clusters.", cluster, ".defaults.", key)))
      defaults.*member = own.*member;
  };
  take("gpus", &JobDefaults::gpus);
  take("cpus", &JobDefaults::cpus);
  take("mem", &JobDefaults::mem_bytes);
  take("time", &JobDefaults::time_seconds);
  take("ranks_per_node", &JobDefaults::ranks_per_node);
  take("requeue", &JobDefaults::requeue);
  take("requeue_on_timeout", &JobDefaults::requeue_on_timeout);
  take("warn", &JobDefaults::warn_seconds);
  take("max_restarts", &JobDefaults::max_restarts);
  return defaults;
}

Config ConfigFor(const Config& config, const std::string& cluster) {
  Config own = config;
  own.defaults = DefaultsFor(config, cluster);
  return own;
}

}  // namespace overcap
