// SPDX-License-Identifier: Apache-2.0
#include "control/stores/config_stores.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/url.h"
#include "stores/location.h"

namespace overcap {
namespace {

constexpr std::string_view kKeyNames[] = {
    "account_key", "sas_token", "secret",        "secret_key",        "access_key",           "key",
    "password",    "token",     "session_token", "aws_access_key_id", "aws_secret_access_key"};

struct TextField {
  std::string_view name;
  std::string StoreEntry::*member;
  bool s3, azure;  // to which kinds it means something; "at" to all
};
constexpr TextField kTexts[] = {
    {"at", &StoreEntry::at, true, true},
    {"endpoint", &StoreEntry::endpoint, true, true},
    {"region", &StoreEntry::region, true, false},
    {"profile", &StoreEntry::profile, true, false},
    {"credentials", &StoreEntry::credentials, true, true},
    {"ca_file", &StoreEntry::ca_file, true, true},
};

// Before it is shown anywhere: a password or a signature may stand in what is none.
Result<void> CheckEndpoint(const std::string& endpoint) {
  if (endpoint.empty()) return {};
  const auto url = ParseUrl(endpoint);
  if (!url) return Fail(url.error().code, StrCat("'endpoint': ", url.error().message), url.error().hint);
  if (!url->query.empty())
    return Fail(ErrorCode::kUsage, "'endpoint' has a '?' in it", "write only https://host");
  return {};
}

bool IsAbsolute(std::string_view path) {
  return path.starts_with('/') || path.starts_with('~') || path.starts_with('$');
}

bool IsLine(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
}

}  // namespace

std::vector<std::string> StoreFieldNames() {
  std::vector<std::string> names;
  for (const TextField& field : kTexts) names.emplace_back(field.name);
  names.emplace_back("path_style");
  return names;
}

Result<void> SetStoreField(const std::string& field, const std::string& value, StoreEntry* entry) {
  if (std::find(std::begin(kKeyNames), std::end(kKeyNames), field) != std::end(kKeyNames))
    return Fail(ErrorCode::kUsage, StrCat("'", field, "' is a key, and keys do not stand in overcap.yaml"),
                "put it into a file of its own (chmod 600) and write 'credentials: FILE' here");
  if (field == "path_style") {
    if (value != "true" && value != "false")
      return Fail(ErrorCode::kUsage, StrCat("'path_style' must be true or false, not ", Quoted(value)));
    entry->path_style = value == "true";
    return {};
  }
  for (const TextField& text : kTexts) {
    if (text.name != field) continue;
    if (!IsLine(value)) return Fail(ErrorCode::kUsage, StrCat("'", field, "' must be a text on one line"));
    entry->*text.member = value;
    return {};
  }
  const std::vector<std::string> names = StoreFieldNames();
  const std::string nearest = Nearest(field, names);
  return Fail(
      ErrorCode::kUsage, StrCat("unknown key ", Quoted(field)),
      nearest.empty() ? StrCat("one of: ", Join(names, ", ")) : StrCat("did you mean '", nearest, "'?"));
}

std::vector<StoreField> StoreFields(const StoreEntry& entry) {
  std::vector<StoreField> fields;
  for (const TextField& text : kTexts) {
    if (!(entry.*text.member).empty()) fields.push_back({text.name, entry.*text.member});
  }
  if (entry.path_style) fields.push_back({"path_style", *entry.path_style ? "true" : "false"});
  return fields;
}

Result<void> CheckStoreEntry(const StoreEntry& entry) {
  if (entry.at.empty())
    return Fail(ErrorCode::kUsage, "has no 'at'", "at: s3://bucket/prefix, or another location");
  OC_TRY(location, ParseStoreLocation(entry.at));
  const bool s3 = location.kind == StoreKind::kS3, azure = location.kind == StoreKind::kAzure;
  for (const TextField& text : kTexts) {
    if (text.name == "at" || (entry.*text.member).empty() || (s3 && text.s3) || (azure && text.azure))
      continue;
    return Fail(ErrorCode::kUsage,
                StrCat("'", text.name, "' means nothing to ", Quoted(location.Text(), 200)));
  }
  if (entry.path_style && !s3)
    return Fail(ErrorCode::kUsage, StrCat("'path_style' means nothing to ", Quoted(location.Text(), 200)));
  OC_TRY_VOID(CheckEndpoint(entry.endpoint));
  if (location.kind == StoreKind::kFolder && !IsAbsolute(location.path))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(entry.at, 200), " must be an absolute path"));
  for (const auto& [name, path] :
       {std::pair{"credentials", &entry.credentials}, {"ca_file", &entry.ca_file}}) {
    if (!path->empty() && !IsAbsolute(*path))
      return Fail(ErrorCode::kUsage,
                  StrCat("'", name, "' is ", Quoted(*path, 200), ", which is not absolute"),
                  "begin it with / or ~/");
  }
  return {};
}

}  // namespace overcap
