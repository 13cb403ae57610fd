// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/json_members.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace overcap {
namespace {

// Far above what any of them has: more is refused before it is looked at.
constexpr size_t kLargest = 1 << 20;

tl::unexpected<Error> Damaged(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged"));
}

}  // namespace

Result<JsonMembers> JsonMembers::Parse(std::string_view text, std::string_view format, int64_t version,
                                       std::string_view what) {
  if (text.size() > kLargest) return Damaged(what);
  auto json = std::make_shared<nlohmann::json>(nlohmann::json::parse(text, nullptr, false));
  if (!json->is_object()) return Damaged(what);
  const JsonMembers members(json);
  std::string said;
  int64_t said_version = 0;
  if (!members.Read("format", &said) || said != format || !members.Read("version", &said_version))
    return Damaged(what);
  if (said_version > version)
    return Fail(ErrorCode::kConflict,
                StrCat(what, " was written by a newer Overcap (format ", said_version, ")"),
                "use a newer version of Overcap");
  if (said_version != version) return Damaged(what);
  return members;
}

bool JsonMembers::Read(const char* name, int64_t* value) const {
  const auto member = json_->find(name);
  if (member == json_->end() || !member->is_number_unsigned()) return false;
  const uint64_t number = member->get<uint64_t>();
  *value = static_cast<int64_t>(number);
  return number <= static_cast<uint64_t>(INT64_MAX);
}

bool JsonMembers::Read(const char* name, std::string* value) const {
  const auto member = json_->find(name);
  if (member == json_->end() || !member->is_string()) return false;
  *value = member->get_ref<const std::string&>();
  return true;
}

bool JsonMembers::Has(const char* name) const {
  return json_->contains(name);
}

bool JsonMembers::IsNull(const char* name) const {
  const auto member = json_->find(name);
  return member != json_->end() && member->is_null();
}

JsonMembers JsonMembers::Below(const char* name) const {
  const auto member = json_->find(name);
  const bool object = member != json_->end() && member->is_object();
  return JsonMembers(std::make_shared<nlohmann::json>(object ? *member : nlohmann::json::object()));
}

}  // namespace overcap
