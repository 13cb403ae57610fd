// SPDX-License-Identifier: Apache-2.0
#include "model/policy/policy_value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "base/units.h"
#include "model/host_list.h"

namespace overcap {
namespace {

using Kind = YamlTree::Kind;

constexpr size_t kMaxProblems = 200;
constexpr int64_t kHundredYears = int64_t{100} * 365 * 86400;

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

void SortOnce(std::vector<std::string>* names) {
  std::ranges::sort(*names);
  names->erase(std::unique(names->begin(), names->end()), names->end());
}

// "a40:8" -> a40, 8.
std::optional<TypedGpus> OneKind(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto count = ParseInt(Trim(text.substr(colon + 1)));
  const std::string type = NormalPolicyGpuType(Trim(text.substr(0, colon)));
  if (!count || *count < 0 || *count > kMaxPolicyCount || !IsPolicyName(type)) return std::nullopt;
  return TypedGpus{type, static_cast<int>(*count)};
}

}  // namespace

void PolicyNotes::Error(int line, std::string message, std::string hint) {
  if (full_) return;
  if (problems_.size() == kMaxProblems) {
    full_ = true;
    message = "there are more errors than are worth telling";
    hint.clear();
  }
  problems_.push_back({line, false, std::move(message), std::move(hint)});
}

std::vector<std::string> PolicyNotes::Hosts(int line, const std::string& what, const std::string& list) {
  if (hosts_left_ == 0) return {};
  auto hosts = ExpandHostList(list);
  if (!hosts) {
    Error(line, StrCat(what, ": ", hosts.error().message), hosts.error().hint);
    return {};
  }
  if (hosts->size() > hosts_left_) {
    hosts_left_ = 0;
    Error(line, "the host lists of the file name more than 1000000 hosts");
    return {};
  }
  hosts_left_ -= hosts->size();
  for (const std::string& host : *hosts) {
    if (IsPolicyName(host)) continue;
    Error(line, StrCat(what, ": ", Quoted(host), " is no name of a host"));
    return {};
  }
  if (hosts->empty()) Error(line, StrCat(what, " names no host"));
  return std::move(*hosts);
}

bool IsPolicyName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
         std::ranges::all_of(text, IsNameChar);
}

bool IsPolicyUser(std::string_view text) {
  return !text.empty() && text.size() <= 32 && text[0] != '-' && text[0] != '.' &&
         std::ranges::all_of(text, IsNameChar);
}

std::vector<std::string> PolicyWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool between = c == ' ' || c == ',' || c == '\t' || c == '\n';
    if (!between) word += c;
    if (between && !word.empty()) words.push_back(std::exchange(word, {}));
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

void PolicyValue::Wrong(std::string_view must_be) const {
  const std::string shown = node_.kind == Kind::kScalar ? StrCat(", not ", Quoted(node_.text)) : "";
  notes_->Error(line_, StrCat(name_, " must be ", must_be, shown));
}

const std::string* PolicyValue::Text(std::string_view must_be) const {
  if (node_.kind == Kind::kScalar && !node_.text.empty()) return &node_.text;
  Wrong(must_be);
  return nullptr;
}

void PolicyValue::Count(int min, int max, int* out) const {
  const std::string must_be = StrCat("a whole number from ", min, " to ", max);
  const std::string* text = Text(must_be);
  if (text == nullptr) return;
  const auto number = ParseInt(*text);
  if (!number || *number < min || *number > max) return Wrong(must_be);
  *out = static_cast<int>(*number);
}

void PolicyValue::CountOrNone(std::optional<int>* out) const {
  if (IsNone()) return out->reset();
  int number = -1;
  Count(0, kMaxPolicyCount, &number);
  if (number >= 0) *out = number;
}

void PolicyValue::Duration(int64_t max, int64_t* out) const {
  const std::string must_be = StrCat("a duration of at most ", FormatDuration(max), " such as 90s or 2m");
  const std::string* text = Text(must_be);
  if (text == nullptr) return;
  if (*text == "0" || *text == "none") {
    *out = 0;
    return;
  }
  const auto seconds = ParseDurationSeconds(*text);
  if (!seconds || *seconds > max) return Wrong(must_be);
  *out = *seconds;
}

void PolicyValue::DurationOrNone(int64_t* out) const {
  constexpr std::string_view kMustBe = "a duration such as 4h or 2d, or none";
  const std::string* text = Text(kMustBe);
  if (text == nullptr) return;
  if (*text == "none") {
    *out = 0;
    return;
  }
  const auto seconds = ParseDurationSeconds(*text);
  if (!seconds || *seconds > kHundredYears) return Wrong(kMustBe);
  *out = *seconds;
}

void PolicyValue::Bytes(int64_t* out) const {
  constexpr std::string_view kMustBe = "a size with a unit such as 16G, or none";
  const std::string* text = Text(kMustBe);
  if (text == nullptr) return;
  if (*text == "none") {
    *out = 0;
    return;
  }
  const auto bytes = ParseBytes(*text);
  if (!bytes) return Wrong(kMustBe);
  *out = *bytes;
}

void PolicyValue::Number(double min, double max, double* out) const {
  const std::string must_be =
      StrCat("a number ", min > 0 ? "above 0" : "from 0", " to ", static_cast<int64_t>(max));
  const std::string* text = Text(must_be);
  if (text == nullptr) return;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool whole = error == std::errc() && end == text->data() + text->size();
  if (!whole || !(number >= min && number <= max)) return Wrong(must_be);
  *out = number;
}

void PolicyValue::Switch(bool* out) const {
  const std::string* text = Text("yes or no");
  if (text == nullptr) return;
  const bool yes = *text == "yes" || *text == "true";
  if (!yes && *text != "no" && *text != "false") return Wrong("yes or no");
  *out = yes;
}

void PolicyValue::Name(std::string* out) const {
  constexpr std::string_view kMustBe = "a name of letters, digits, '.', '_' and '-'";
  const std::string* text = Text(kMustBe);
  if (text == nullptr) return;
  if (!IsPolicyName(*text)) return Wrong(kMustBe);
  *out = *text;
}

void PolicyValue::Words(std::string_view kind, bool (*fits)(std::string_view),
                        std::vector<std::string>* out) const {
  if (IsNone()) return out->clear();
  std::vector<std::string> words;
  if (node_.kind == Kind::kScalar) words = PolicyWords(node_.text);
  if (node_.kind == Kind::kMap || node_.kind == Kind::kNull)
    return Wrong(StrCat("a list of ", kind, "s: [one, two]"));
  for (const YamlTree& item : node_.items) {
    if (item.kind != Kind::kScalar)
      return notes_->Error(item.line, StrCat("each of ", name_, " must be a ", kind));
    words.push_back(item.text);
  }
  for (const std::string& word : words) {
    if (!fits(word)) return notes_->Error(line_, StrCat(Quoted(word), " in ", name_, " is no ", kind));
  }
  SortOnce(&words);
  *out = std::move(words);
}

void PolicyValue::Names(std::vector<std::string>* out) const {
  Words("name", IsPolicyName, out);
}

void PolicyValue::Users(std::vector<std::string>* out) const {
  Words("user", IsPolicyUser, out);
}

void PolicyValue::Hosts(std::vector<std::string>* out) const {
  std::string list;
  if (node_.kind == Kind::kList) {
    std::vector<std::string> parts;
    for (const YamlTree& item : node_.items) parts.push_back(item.text);
    list = Join(parts, ",");
  } else if (const std::string* text = Text("a host list such as a[01-08]")) {
    list = *text;
  } else {
    return;
  }
  std::vector<std::string> hosts = notes_->Hosts(line_, name_, list);
  SortOnce(&hosts);
  if (!hosts.empty()) *out = std::move(hosts);
}

void PolicyValue::Gpus(std::vector<TypedGpus>* out) const {
  constexpr std::string_view kMustBe = "GPUs by type such as a40:8";
  if (IsNone()) return out->clear();
  std::vector<TypedGpus> gpus;
  const auto add = [&](const std::optional<TypedGpus>& kind) {
    const bool good = kind && std::ranges::find(gpus, kind->type, &TypedGpus::type) == gpus.end();
    if (good && kind->count > 0) gpus.push_back(*kind);
    return good;
  };
  if (IsMap()) {
    for (const auto& [type, value] : PolicyEntries(notes_, node_, name_)) {
      if (value.node().kind != Kind::kScalar || !add(OneKind(StrCat(type, ":", value.node().text))))
        return Wrong("GPUs by type such as {a40: 8}");
    }
  } else {
    const std::string* text = Text(kMustBe);
    if (text == nullptr) return;
    for (const std::string& word : PolicyWords(*text)) {
      if (!add(OneKind(word))) return Wrong(kMustBe);
    }
  }
  *out = std::move(gpus);
}

void PolicyValue::Time(int64_t* out_us) const {
  constexpr std::string_view kMustBe = "a time in UTC such as 2026-12-01T08:00:00Z";
  const std::string* text = Text(kMustBe);
  if (text == nullptr) return;
  const auto time = ParseTimeUtc(*text);
  if (!time) return Wrong(kMustBe);
  *out_us = *time;
}

std::vector<std::pair<std::string, PolicyValue>> PolicyEntries(PolicyNotes* notes, const YamlTree& node,
                                                               const std::string& owner) {
  std::vector<std::pair<std::string, PolicyValue>> entries;
  if (node.kind != Kind::kMap) {
    notes->Error(node.line,
                 owner.empty() ? "must be 'key: value' lines" : StrCat(owner, " must have keys below it"));
    return entries;
  }
  const std::string of = owner.empty() ? "" : StrCat(" of ", owner);
  std::set<std::string> seen;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const YamlTree &key = node.items[i], &value = node.items[i + 1];
    const std::string name = StrCat(Quoted(key.text), of);
    if (key.kind != Kind::kScalar)
      notes->Error(key.line, StrCat("a key", of, " must be a word"));
    else if (!seen.insert(key.text).second)
      notes->Error(key.line, StrCat(name, " stands here a second time"));
    else if (value.kind == Kind::kNull)
      notes->Error(key.line, StrCat(name, " has no value"));
    else
      entries.emplace_back(key.text, PolicyValue(notes, key.line, value, name));
  }
  return entries;
}

void UnknownPolicyKey(const PolicyValue& value, std::string_view key, const std::string& owner,
                      const std::vector<std::string>& known) {
  const std::string nearest = Nearest(key, known);
  value.notes().Error(
      value.line(), StrCat("unknown key ", Quoted(key), owner.empty() ? "" : StrCat(" of ", owner)),
      nearest.empty() ? StrCat("one of: ", Join(known, ", ")) : StrCat("did you mean '", nearest, "'?"));
}

}  // namespace overcap
