// SPDX-License-Identifier: Apache-2.0
#include "launch/site/site_file.h"

#include <fnmatch.h>
#include <set>

#include "base/text.h"
#include "model/yaml_tree.h"

namespace overcap {
namespace {

using Kind = YamlTree::Kind;

// Walks a document along the table of keys, which bounds the walk.
class Walker {
 public:
  Walker(const std::string& file, SiteFile* site) : file_(file), site_(site) {}

  Result<void> Map(const YamlTree& node, const std::string& path);

 private:
  Result<void> Entry(const YamlTree& key, const YamlTree& value, const std::string& path);
  Result<void> Matches(const YamlTree& node, int line);
  Result<void> OneMatch(const YamlTree& node);
  Result<void> Value(const SiteKey& key, const YamlTree& node, int line);
  Result<void> Count(const SiteKey& key, const YamlTree& node, int* number);
  Result<std::vector<std::string>> Words(const SiteKey& key, const YamlTree& node);
  Result<std::map<std::string, std::string>> Assignments(const SiteKey& key, const YamlTree& node);
  Result<void> Word(const SiteKey& key, const YamlTree& node);
  Result<void> CheckKey(const YamlTree& key, std::set<std::string>* seen);

  tl::unexpected<Error> Bad(int line, std::string message, std::string hint = {}) const {
    return Fail(ErrorCode::kUsage, StrCat(file_, ":", line, ": ", message), std::move(hint));
  }

  std::string file_;
  SiteFile* site_;
};

std::string Under(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : StrCat(path, ".", key);
}

// The keys that may stand directly under `path`.
std::vector<std::string> KeysUnder(const std::string& path) {
  const std::string prefix = path.empty() ? "" : path + ".";
  std::set<std::string> keys;
  for (const SiteKey& key : SiteKeys()) {
    if (!key.path.starts_with(prefix)) continue;
    const std::string_view rest = key.path.substr(prefix.size());
    keys.emplace(rest.substr(0, rest.find('.')));
  }
  return {keys.begin(), keys.end()};
}

const SiteKey* FindKey(std::string_view path) {
  for (const SiteKey& key : SiteKeys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

Result<void> Walker::CheckKey(const YamlTree& key, std::set<std::string>* seen) {
  if (key.kind != Kind::kScalar) return Bad(key.line, "a key must be a word");
  if (seen->insert(key.text).second) return {};
  return Bad(key.line, StrCat("key '", ToUtf8(key.text), "' stands here a second time"));
}

Result<void> Walker::Map(const YamlTree& node, const std::string& path) {
  if (node.kind != Kind::kMap) {
    return Bad(node.line,
               path.empty() ? "must be 'key: value' lines" : StrCat("'", path, "' must have keys below it"));
  }
  std::set<std::string> seen;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    OC_TRY_VOID(CheckKey(node.items[i], &seen));
    OC_TRY_VOID(Entry(node.items[i], node.items[i + 1], path));
  }
  return {};
}

Result<void> Walker::Entry(const YamlTree& key, const YamlTree& value, const std::string& path) {
  const std::vector<std::string> known = KeysUnder(path);
  if (std::find(known.begin(), known.end(), key.text) == known.end()) {
    const std::string where = path.empty() ? "" : StrCat(" in '", path, "'");
    const std::string nearest = Nearest(key.text, known);
    return Bad(
        key.line, StrCat("unknown key '", ToUtf8(key.text), "'", where),
        nearest.empty() ? StrCat("one of: ", Join(known, ", ")) : StrCat("did you mean '", nearest, "'?"));
  }
  const std::string inner = Under(path, key.text);
  if (value.kind == Kind::kNull) return Bad(key.line, StrCat("'", inner, "' has no value"));
  if (inner == "match") return Matches(value, key.line);
  const SiteKey* row = FindKey(inner);
  return row == nullptr ? Map(value, inner) : Value(*row, value, key.line);
}

Result<void> Walker::Matches(const YamlTree& node, int line) {
  if (node.kind != Kind::kList) return OneMatch(node);
  if (node.items.empty()) return Bad(line, "'match' is empty", "say which machine it is by 'hosts' or 'env'");
  for (const YamlTree& item : node.items) OC_TRY_VOID(OneMatch(item));
  return {};
}

Result<void> Walker::OneMatch(const YamlTree& node) {
  site_->matches.emplace_back();
  OC_TRY_VOID(Map(node, "match"));
  if (!site_->matches.back().hosts.empty() || !site_->matches.back().env.empty()) return {};
  return Bad(node.line, "'match' is empty", "say which machine it is by 'hosts' or 'env'");
}

Result<void> Walker::Word(const SiteKey& key, const YamlTree& node) {
  if (node.kind != Kind::kScalar) {
    const bool list = key.type == SiteType::kWords || key.type == SiteType::kVariables;
    return Bad(node.line, StrCat(list ? "each of '" : "'", key.path, "' must be ",
                                 SiteTypeName(list ? SiteType::kWord : key.type)));
  }
  const auto checked = CheckSiteWord(key.type, node.text);
  if (checked) return {};
  return Bad(node.line, StrCat("'", key.path, "' ", checked.error().message));
}

Result<void> Walker::Count(const SiteKey& key, const YamlTree& node, int* number) {
  OC_TRY_VOID(Word(key, node));
  const long long value = *ParseInt(node.text);
  if (value < key.min || value > key.max) {
    return Bad(node.line,
               StrCat("'", key.path, "' must be from ", key.min, " to ", key.max, ", not ", value));
  }
  *number = static_cast<int>(value);
  return {};
}

Result<std::vector<std::string>> Walker::Words(const SiteKey& key, const YamlTree& node) {
  if (node.kind != Kind::kList) {
    return Bad(node.line, StrCat("'", key.path, "' must be ", SiteTypeName(key.type)));
  }
  std::vector<std::string> words;
  for (const YamlTree& item : node.items) {
    OC_TRY_VOID(Word(key, item));
    words.push_back(item.text);
  }
  return words;
}

Result<std::map<std::string, std::string>> Walker::Assignments(const SiteKey& key, const YamlTree& node) {
  if (node.kind != Kind::kMap) {
    return Bad(node.line, StrCat("'", key.path, "' must be ", SiteTypeName(key.type)));
  }
  std::map<std::string, std::string> variables;
  std::set<std::string> seen;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const YamlTree& name = node.items[i];
    OC_TRY_VOID(CheckKey(name, &seen));
    if (!IsVariableName(name.text)) {
      return Bad(name.line, StrCat("'", ToUtf8(name.text), "' in '", key.path, "' is no name of a variable"));
    }
    OC_TRY_VOID(Word(key, node.items[i + 1]));
    variables[name.text] = node.items[i + 1].text;
  }
  return variables;
}

Result<void> Walker::Value(const SiteKey& key, const YamlTree& node, int line) {
  const SiteField field = key.field(*site_);
  if (auto* const* number = std::get_if<int*>(&field)) return Count(key, node, *number);
  if (auto* const* text = std::get_if<std::string*>(&field)) {
    OC_TRY_VOID(Word(key, node));
    **text = node.text;
    return {};
  }
  if (auto* const* variables = std::get_if<std::map<std::string, std::string>*>(&field)) {
    OC_TRY(read, Assignments(key, node));
    **variables = std::move(read);
    return {};
  }
  OC_TRY(words, Words(key, node));
  if (key.path == "match.hosts" && words.empty()) return Bad(line, "'match.hosts' is empty");
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&field))
    **list = std::move(words);
  else
    **std::get_if<std::optional<std::vector<std::string>>*>(&field) = std::move(words);
  return {};
}

bool PatternFits(const std::string& pattern, std::string_view text, int flags) {
  return fnmatch(pattern.c_str(), std::string(text).c_str(), flags) == 0;
}

// The pattern that the name fits, with or without its domain; nullptr when none does.
const std::string* HostPattern(const std::vector<std::string>& patterns, std::string_view host_name) {
  const std::string_view short_name = host_name.substr(0, host_name.find('.'));
  for (const std::string& pattern : patterns) {
    if (PatternFits(pattern, host_name, FNM_CASEFOLD) || PatternFits(pattern, short_name, FNM_CASEFOLD))
      return &pattern;
  }
  return nullptr;
}

std::optional<SiteFit> FitOfOne(const SiteMatch& match, std::string_view host_name,
                                const Variables& variables) {
  SiteFit fit;
  std::vector<std::string> reasons;
  if (!match.hosts.empty()) {
    const std::string* pattern = HostPattern(match.hosts, host_name);
    if (pattern == nullptr) return std::nullopt;
    reasons.push_back(StrCat("host name '", ToUtf8(host_name), "' fits '", *pattern, "'"));
  }
  for (const auto& [name, pattern] : match.env) {
    if (!variables.Has(name) || !PatternFits(pattern, variables.Get(name), 0)) return std::nullopt;
    reasons.push_back(StrCat(name, " is '", ToUtf8(variables.Get(name)), "'"));
  }
  return SiteFit{static_cast<int>(reasons.size()), Join(reasons, " and ")};
}

}  // namespace

Result<SiteFile> ParseSiteFile(std::string_view text, const std::string& file) {
  OC_TRY(tree, ParseYaml(text, file));
  SiteFile site;
  if (tree.kind != Kind::kNull) OC_TRY_VOID(Walker(file, &site).Map(tree, ""));
  return site;
}

std::optional<SiteFit> FitOf(const std::vector<SiteMatch>& matches, std::string_view host_name,
                             const Variables& variables) {
  std::optional<SiteFit> best;
  for (const SiteMatch& match : matches) {
    std::optional<SiteFit> fit = FitOfOne(match, host_name, variables);
    if (fit && (!best || fit->conditions > best->conditions)) best = std::move(fit);
  }
  return best;
}

}  // namespace overcap
