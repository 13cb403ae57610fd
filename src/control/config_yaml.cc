// SPDX-License-Identifier: Apache-2.0
// Reads one overcap.yaml by the table of keys.
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "control/config_schema.h"
#include "control/stores/config_stores.h"
#include "stores/location.h"

namespace overcap {
namespace {

// Walks a document along the table; the depth of the table bounds the walk, whatever the document looks like.
class Walker {
 public:
  Walker(const std::string& file, Config* config) : file_(file), config_(config) {}

  // `pattern` is the path so far as the table writes it ("clusters.*"), `name` what '*' stands for.
  Result<void> Map(const YAML::Node& node, const std::string& pattern, const std::string& name);

 private:
  Result<void> Entry(const YAML::Node& key, const YAML::Node& value, const std::string& pattern,
                     const std::string& name);
  Result<void> Value(const ConfigKey& key, const YAML::Node& node, int line, const std::string& name);
  Result<void> List(const ConfigKey& key, const ConfigField& field, const YAML::Node& node,
                    const std::string& path);
  Result<std::vector<GpuDeclaration>> Gpus(const YAML::Node& node, int line);
  Result<void> Stores(const YAML::Node& node);
  Result<StoreEntry> OneStore(const YAML::Node& node, const std::string& name, int line);
  // `section`: "mounts" or "clusters.big.mounts".
  Result<void> Mounts(const YAML::Node& node, const std::string& section, MountEntries* mounts);
  Result<MountEntry> OneMount(const YAML::Node& node, const std::string& name, int line);
  Result<void> MountValue(const std::string& field, const YAML::Node& value, MountEntry* entry);
  Result<GpuDeclaration> OneGpu(const YAML::Node& node, int line);
  Result<void> GpuField(const std::string& field, const YAML::Node& value, GpuDeclaration* gpu);

  tl::unexpected<Error> Bad(int line, std::string message, std::string hint = {}) const {
    return Fail(ErrorCode::kUsage, StrCat(file_, ":", line, ": ", message), std::move(hint));
  }

  std::string file_;
  Config* config_;
};

int LineOf(const YAML::Node& node) {
  return node.Mark().line + 1;
}

std::string Shown(const std::string& pattern, const std::string& name) {
  std::string path = pattern;
  if (const size_t star = path.find('*'); star != std::string::npos) path.replace(star, 1, name);
  return path;
}

std::string Under(const std::string& pattern, std::string_view key) {
  return pattern.empty() ? std::string(key) : StrCat(pattern, ".", key);
}

// The keys that may stand directly under `pattern`; "*" among them when any name may.
std::set<std::string> KeysUnder(const std::string& pattern) {
  const std::string prefix = pattern.empty() ? "" : pattern + ".";
  std::set<std::string> keys;
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.path.starts_with(prefix)) continue;
    const std::string_view rest = key.path.substr(prefix.size());
    keys.emplace(rest.substr(0, rest.find('.')));
  }
  return keys;
}

const ConfigKey* FindKey(std::string_view pattern) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.path == pattern) return &key;
  }
  return nullptr;
}

std::string DidYouMean(const std::string& word, const std::set<std::string>& known) {
  const std::vector<std::string> candidates(known.begin(), known.end());
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? StrCat("one of: ", Join(candidates, ", "))
                         : StrCat("did you mean '", nearest, "'?");
}

Result<void> Walker::Map(const YAML::Node& node, const std::string& pattern, const std::string& name) {
  if (node.IsNull()) return {};
  if (!node.IsMap()) {
    return Bad(LineOf(node), pattern.empty()
                                 ? "must be 'key: value' lines"
                                 : StrCat("'", Shown(pattern, name), "' must have keys below it"));
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) return Bad(LineOf(entry.first), "a key must be a word");
    if (!seen.insert(entry.first.Scalar()).second) {
      return Bad(LineOf(entry.first),
                 StrCat("key '", ToUtf8(entry.first.Scalar()), "' stands here a second time"));
    }
    OC_TRY_VOID(Entry(entry.first, entry.second, pattern, name));
  }
  return {};
}

Result<void> Walker::Entry(const YAML::Node& key, const YAML::Node& value, const std::string& pattern,
                           const std::string& name) {
  const std::string word = key.Scalar();
  if (pattern.empty() && word == "stores") return Stores(value);
  if (pattern.empty() && word == "mounts") return Mounts(value, word, &config_->mounts);
  if (pattern == "clusters.*" && word == "mounts")
    return Mounts(value, StrCat("clusters.", name, ".mounts"), &config_->clusters[name].mounts);
  std::set<std::string> known = KeysUnder(pattern);
  if (pattern.empty()) known.insert({"stores", "mounts"});
  if (pattern == "clusters.*") known.insert("mounts");
  if (known.contains("*")) {
    const ConfigKey* cluster = FindKey("cluster");
    std::string checked;
    if (!SetFromText(*cluster, ConfigField(&checked), word)) {
      return Bad(LineOf(key), StrCat("'", ToUtf8(word), "' must be ", ConfigTypeName(ConfigType::kName)));
    }
    const bool known_name = config_->clusters.contains(word);
    ClusterConfig& added = config_->clusters[word];
    if (!known_name && FindDriver(word) != nullptr) added.driver = word;
    return Map(value, Under(pattern, "*"), word);
  }
  if (!known.contains(word)) {
    const std::string where = pattern.empty() ? "" : StrCat(" in '", Shown(pattern, name), "'");
    return Bad(LineOf(key), StrCat("unknown key '", ToUtf8(word), "'", where), DidYouMean(word, known));
  }
  const std::string path = Under(pattern, word);
  const ConfigKey* row = FindKey(path);
  if (row == nullptr) return Map(value, path, name);
  return Value(*row, value, LineOf(key), name);
}

Result<void> Walker::Value(const ConfigKey& key, const YAML::Node& node, int line, const std::string& name) {
  const std::string path = ConfigPath(key, name);
  Config scratch;  // checked also where a nearer file has set the key already
  const bool taken = config_->settings.contains(path);
  const ConfigField field = key.field(taken ? scratch : *config_, name);
  if (key.type == ConfigType::kGpus) {
    OC_TRY(gpus, Gpus(node, line));
    *std::get<std::optional<std::vector<GpuDeclaration>>*>(field) = std::move(gpus);
  } else if (std::holds_alternative<std::vector<std::string>*>(field) && node.IsSequence()) {
    OC_TRY_VOID(List(key, field, node, path));
  } else if (!node.IsScalar()) {
    const std::string what = node.IsNull() ? "has no value" : StrCat("must be ", ConfigTypeName(key.type));
    return Bad(line, StrCat("'", path, "' ", what));
  } else if (auto set = SetFromText(key, field, node.Scalar()); !set) {
    return Bad(LineOf(node), StrCat("'", path, "' ", set.error().message), set.error().hint);
  }
  if (!taken) config_->settings[path] = {ShowValue(key, field), file_, line};
  return {};
}

Result<void> Walker::List(const ConfigKey& key, const ConfigField& field, const YAML::Node& node,
                          const std::string& path) {
  std::vector<std::string> words;
  for (const YAML::Node& entry : node) {
    if (!entry.IsScalar())
      return Bad(LineOf(node), StrCat("'", path, "' must be ", ConfigTypeName(key.type)));
    words.push_back(entry.Scalar());
  }
  auto set = SetFromList(key, field, std::move(words));
  if (!set) return Bad(LineOf(node), StrCat("'", path, "' ", set.error().message), set.error().hint);
  return {};
}

Result<void> Walker::Stores(const YAML::Node& node) {
  if (node.IsNull()) return {};
  if (!node.IsMap())
    return Bad(LineOf(node), "'stores' must have names below it", "data: s3://bucket/prefix");
  std::set<std::string> seen;
  for (const auto& each : node) {
    const std::string name = each.first.IsScalar() ? each.first.Scalar() : "";
    const int line = LineOf(each.first);
    if (SplitStoreName(name).name != name || name.empty())
      return Bad(line, StrCat("'", ToUtf8(name), "' must be ", ConfigTypeName(ConfigType::kName)));
    if (!seen.insert(name).second) return Bad(line, StrCat("store '", name, "' stands here a second time"));
    OC_TRY(entry, OneStore(each.second, name, line));
    if (const auto fits = CheckStoreEntry(entry); !fits)
      return Bad(line, StrCat("store '", name, "': ", fits.error().message), fits.error().hint);
    const std::string path = StrCat("stores.", name);
    if (config_->settings.contains(path)) continue;
    config_->settings[path] = {entry.at, file_, line};
    config_->stores[name] = std::move(entry);
  }
  return {};
}

Result<StoreEntry> Walker::OneStore(const YAML::Node& node, const std::string& name, int line) {
  StoreEntry entry;
  if (node.IsScalar()) {
    entry.at = node.Scalar();
    return entry;
  }
  if (!node.IsMap()) return Bad(line, StrCat("store '", name, "' must be a location, or have 'at' below it"));
  std::set<std::string> seen;
  for (const auto& each : node) {
    const std::string field = each.first.IsScalar() ? each.first.Scalar() : "";
    if (!seen.insert(field).second)
      return Bad(LineOf(each.first), StrCat("key '", ToUtf8(field), "' stands here a second time"));
    const auto set = SetStoreField(field, each.second.IsScalar() ? each.second.Scalar() : "", &entry);
    if (!set)
      return Bad(LineOf(each.first), StrCat("store '", name, "': ", set.error().message), set.error().hint);
  }
  return entry;
}

Result<void> Walker::Mounts(const YAML::Node& node, const std::string& section, MountEntries* mounts) {
  if (node.IsNull()) return {};
  if (!node.IsMap())
    return Bad(LineOf(node), StrCat("'", section, "' must have names below it"), "data: s3://bucket/prefix");
  std::set<std::string> seen;
  for (const auto& each : node) {
    const std::string name = each.first.IsScalar() ? each.first.Scalar() : "";
    const int line = LineOf(each.first);
    if (!seen.insert(name).second)
      return Bad(line, StrCat("mount ", Quoted(name), " stands here a second time"));
    OC_TRY(entry, OneMount(each.second, name, line));
    entry.where = StrCat(file_, ":", line);
    if (const auto fits = CheckedMount(name, entry); !fits)
      return Bad(line, fits.error().message, fits.error().hint);
    const std::string path = StrCat(section, ".", name);
    if (config_->settings.contains(path)) continue;
    config_->settings[path] = {entry.store, file_, line};
    (*mounts)[name] = std::move(entry);
  }
  return {};
}

Result<MountEntry> Walker::OneMount(const YAML::Node& node, const std::string& name, int line) {
  MountEntry entry;
  if (node.IsScalar()) {
    if (const auto set = SetMountField("store", node.Scalar(), &entry); !set)
      return Bad(LineOf(node), StrCat("mount ", Quoted(name), ": ", set.error().message));
    return entry;
  }
  if (!node.IsMap())
    return Bad(line, StrCat("mount ", Quoted(name), " must be a store, or have 'store' below it"));
  std::set<std::string> seen;
  for (const auto& each : node) {
    const std::string field = each.first.IsScalar() ? each.first.Scalar() : "";
    if (!seen.insert(field).second)
      return Bad(LineOf(each.first), StrCat("key ", Quoted(field), " stands here a second time"));
    const auto set = MountValue(field, each.second, &entry);
    if (!set)
      return Bad(LineOf(each.first), StrCat("mount ", Quoted(name), ": ", set.error().message),
                 set.error().hint);
  }
  if (entry.store.empty())
    return Bad(line, StrCat("mount ", Quoted(name), " has no 'store'"), "store: s3://bucket/prefix");
  return entry;
}

Result<void> Walker::MountValue(const std::string& field, const YAML::Node& value, MountEntry* entry) {
  if (field == "options" && !value.IsSequence() && !value.IsScalar())
    return Fail(ErrorCode::kUsage, "'options' must be a list of words");
  if (field != "options" || !value.IsSequence())
    return SetMountField(field, value.IsScalar() ? value.Scalar() : "", entry);
  std::vector<std::string> words;
  for (const YAML::Node& word : value) {
    if (!word.IsScalar()) return Fail(ErrorCode::kUsage, "'options' must be a list of words");
    words.push_back(word.Scalar());
  }
  SetMountOptions(std::move(words), entry);
  return {};
}

Result<std::vector<GpuDeclaration>> Walker::Gpus(const YAML::Node& node, int line) {
  if (!node.IsSequence()) return Bad(line, "'gpus' must be a list", "write [{type: a40, count: 4}]");
  std::vector<GpuDeclaration> gpus;
  int64_t total = 0;
  for (const YAML::Node& entry : node) {
    OC_TRY(gpu, OneGpu(entry, line));
    total += gpu.count;
    gpus.push_back(std::move(gpu));
  }
  if (total > 1024) return Bad(line, StrCat("'gpus' declares ", total, " GPUs, one machine may have 1024"));
  return gpus;
}

Result<GpuDeclaration> Walker::OneGpu(const YAML::Node& node, int line) {
  if (!node.IsMap())
    return Bad(node.IsDefined() ? LineOf(node) : line, "each of 'gpus' must be like {type: a40, count: 4}");
  GpuDeclaration gpu;
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string field = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (!seen.insert(field).second) {
      return Bad(LineOf(entry.first), StrCat("key '", ToUtf8(field), "' stands here a second time"));
    }
    if (field != "type" && field != "count" && field != "memory") {
      return Bad(LineOf(entry.first), StrCat("unknown key '", ToUtf8(field), "' in 'gpus'"),
                 DidYouMean(field, {"type", "count", "memory"}));
    }
    OC_TRY_VOID(GpuField(field, entry.second, &gpu));
  }
  if (gpu.type.empty())
    return Bad(LineOf(node), "each of 'gpus' needs a 'type'", "write {type: a40, count: 4}");
  return gpu;
}

Result<void> Walker::GpuField(const std::string& field, const YAML::Node& value, GpuDeclaration* gpu) {
  static constexpr ConfigKey kType = {"type", ConfigType::kName, 0, 0, "", nullptr};
  static constexpr ConfigKey kCount = {"count", ConfigType::kCount, 1, 1024, "", nullptr};
  static constexpr ConfigKey kMemory = {"memory", ConfigType::kBytes, 1, int64_t{1} << 50, "", nullptr};
  if (!value.IsScalar()) return Bad(LineOf(value), StrCat("'", field, "' of 'gpus' has no plain value"));
  const std::string& text = value.Scalar();
  const auto set = field == "type"    ? SetFromText(kType, ConfigField(&gpu->type), text)
                   : field == "count" ? SetFromText(kCount, ConfigField(&gpu->count), text)
                                      : SetFromText(kMemory, ConfigField(&gpu->memory_bytes), text);
  if (!set)
    return Bad(LineOf(value), StrCat("'", field, "' of 'gpus' ", set.error().message), set.error().hint);
  return {};
}

// Takes the events of a document and only keeps where it begins.
class DocumentStart : public YAML::EventHandler {
 public:
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

 private:
  int line_ = 1;
};

// YAML::Load ignores what follows the first document, YAML::LoadAll never comes back from a stray ']' there.
Result<void> CheckOneDocument(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart document;
  if (!parser.HandleNextDocument(document) || !parser.HandleNextDocument(document)) return {};
  return Fail(ErrorCode::kUsage,
              StrCat(file, ":", document.line(), ": something stands behind the end of the document"));
}

}  // namespace

Result<void> ApplyConfigText(std::string_view text, const std::string& file, Config* config) {
  try {
    const YAML::Node document = YAML::Load(std::string(text));
    OC_TRY_VOID(CheckOneDocument(std::string(text), file));
    Config merged = *config;  // so that a file with an error changes nothing
    OC_TRY_VOID(Walker(file, &merged).Map(document, "", ""));
    *config = std::move(merged);
    return {};
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kUsage, StrCat(file, ":", error.mark.line + 1, ": ", ToUtf8(error.msg)),
                "the file is no valid YAML");
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kUsage, StrCat(file, ":1: ", ToUtf8(error.what())), "the file is no valid YAML");
  }
}

}  // namespace overcap
