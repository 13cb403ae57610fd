// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/pax_overrides.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/tar/pax_records.h"
#include "snapshot/tar/posix_acl_text.h"
#include "snapshot/tar/tar_sparse.h"

namespace overcap {
namespace {

constexpr std::string_view kXattr = "SCHILY.xattr.", kSparse = "GNU.sparse.";

bool SetText(std::string_view value, std::optional<std::string>* out) {
  out->reset();
  if (!value.empty()) *out = std::string(value);
  return value.find('\0') == std::string_view::npos;
}

bool SetNumber(std::string_view value, std::optional<int64_t>* out) {
  out->reset();
  if (value.empty()) return true;
  const auto number = ParseInt(value);
  if (!number || *number < 0) return false;
  *out = *number;
  return true;
}

bool SetTime(std::string_view value, std::optional<int64_t>* out) {
  *out = value.empty() ? std::nullopt : ParsePaxTime(value);
  return value.empty() || out->has_value();
}

bool AddXattr(std::string_view name, std::string_view value, PaxOverrides* out) {
  if (name.empty() || name.size() > 255 || name.find('\0') != std::string_view::npos) return false;
  out->xattrs.push_back({std::string(name), std::string(value)});
  return true;
}

bool SetRuns(std::string_view value, PaxOverrides* out) {
  auto runs = ParseSparseList(value);
  if (!runs) return false;
  out->sparse_runs = std::move(*runs);
  out->has_runs = true;
  return true;
}

// Format 0.0: one record for each number.
bool AddRun(std::string_view key, std::string_view value, PaxOverrides* out) {
  const auto number = ParseInt(value);
  if (!number || *number < 0) return false;
  out->has_runs = true;
  if (key == "offset") {
    if (out->sparse_runs.size() >= kTarRunsMost) return false;
    out->sparse_runs.push_back({*number, 0});
    return true;
  }
  if (out->sparse_runs.empty()) return false;
  out->sparse_runs.back().length = *number;
  return true;
}

bool ApplySparse(std::string_view key, std::string_view value, PaxOverrides* out) {
  if (key == "major") return SetNumber(value, &out->sparse_major);
  if (key == "minor") return SetNumber(value, &out->sparse_minor);
  if (key == "size" || key == "realsize") return SetNumber(value, &out->sparse_size);
  if (key == "name") return SetText(value, &out->sparse_name);
  if (key == "map") return SetRuns(value, out);
  if (key == "offset" || key == "numbytes") return AddRun(key, value, out);
  if (key == "numblocks") out->has_runs = true;
  return true;
}

bool Apply(const PaxRecord& record, PaxOverrides* out) {
  const auto [key, value] = record;
  if (key == "path") return SetText(value, &out->path);
  if (key == "linkpath") return SetText(value, &out->link);
  if (key == "size") return SetNumber(value, &out->size);
  if (key == "uid") return SetNumber(value, &out->uid);
  if (key == "gid") return SetNumber(value, &out->gid);
  if (key == "mtime") return SetTime(value, &out->mtime_ns);
  if (key == "SCHILY.acl.access") return SetText(value, &out->acl_access);
  if (key == "SCHILY.acl.default") return SetText(value, &out->acl_default);
  if (key == "RHT.security.selinux") return AddXattr("security.selinux", value, out);
  if (key.starts_with(kXattr)) return AddXattr(key.substr(kXattr.size()), value, out);
  if (key.starts_with(kSparse)) return ApplySparse(key.substr(kSparse.size()), value, out);
  return true;
}

void AddAcl(std::string_view name, const std::optional<std::string>& text,
            std::vector<ExtendedAttribute>* out) {
  if (!text) return;
  // One that names somebody unknown here cannot be kept: permissions stay those of the mode.
  if (auto value = AclTextToXattr(*text, FindAclIdHere))
    out->push_back({std::string(name), std::move(*value)});
}

}  // namespace

Result<void> ApplyPaxRecords(std::string_view bytes, PaxOverrides* overrides) {
  const auto records = ParsePaxRecords(bytes);
  if (!records) return Fail(ErrorCode::kCorrupt, "a pax header is damaged");
  for (const PaxRecord& record : *records) {
    if (!Apply(record, overrides)) {
      return Fail(ErrorCode::kCorrupt, StrCat("a pax header has a bad record ", Quoted(record.key)));
    }
  }
  return {};
}

std::vector<ExtendedAttribute> XattrsOf(const PaxOverrides& overrides) {
  std::vector<ExtendedAttribute> all;
  AddAcl("system.posix_acl_access", overrides.acl_access, &all);
  AddAcl("system.posix_acl_default", overrides.acl_default, &all);
  all.insert(all.end(), overrides.xattrs.begin(), overrides.xattrs.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<ExtendedAttribute> last;
  for (ExtendedAttribute& one : all) {
    if (!last.empty() && last.back().name == one.name)
      last.back() = std::move(one);
    else
      last.push_back(std::move(one));
  }
  return last;
}

}  // namespace overcap
