// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/courier_message.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap {
namespace {

using Kind = CourierOrder::Kind;

constexpr std::pair<std::string_view, Kind> kKinds[] = {
    {"bring", Kind::kBring}, {"cancel", Kind::kCancel}, {"create", Kind::kCreate},
    {"code", Kind::kCode},   {"blob", Kind::kBlob},     {"track", Kind::kTrack},
    {"done", Kind::kDone},   {"drain", Kind::kDrain},   {"finish", Kind::kFinish}};
constexpr int64_t kMostSeconds = 86'400;
constexpr size_t kLongestError = 2000;

// Of a folder that is tracked all that grows in it: its name ends with '/'.
bool IsInside(std::string_view name) {
  if (name.ends_with('/')) name.remove_suffix(1);
  if (name.empty() || name.starts_with('/') || name.size() > 500) return false;
  const std::vector<std::string> parts = Split(name, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos;
  });
}

Result<void> CheckOrder(const CourierOrder& order) {
  const bool code = order.kind == Kind::kCode || order.kind == Kind::kBlob;
  const bool inside = std::all_of(order.names.begin(), order.names.end(), IsInside) &&
                      (order.kind != Kind::kCreate || IsInside(order.name));
  if (!inside) return Fail(ErrorCode::kUsage, "a name leads out of the job's folder");
  if (code && (order.name.empty() || !order.to.starts_with('/')))
    return Fail(ErrorCode::kUsage, "an order without what or where");
  if (order.seconds < 0 || order.seconds > kMostSeconds) return Fail(ErrorCode::kUsage, "no such time");
  return {};
}

}  // namespace

Result<CourierOrder> ParseCourierOrder(std::string_view message) {
  OC_TRY(object, ParseJsonObject(message, "order"));
  FieldReader reader(object, "order");
  CourierOrder order;
  std::string word;
  reader.Read("do", &word);
  for (const char* key : {"name", "tree", "id"}) reader.Read(key, &order.name);
  reader.Read("to", &order.to);
  reader.Read("names", &order.names);
  reader.Read("seconds", &order.seconds);
  OC_TRY_VOID(reader.Check());
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& row) { return row.first == word; });
  if (found == std::end(kKinds)) return Fail(ErrorCode::kUsage, StrCat("there is no order ", Quoted(word)));
  order.kind = found->second;
  OC_TRY_VOID(CheckOrder(order));
  return order;
}

std::string ErrorMessage(const Error& error) {
  return JsonWriter()
      .BeginObject()
      .Field("error", std::string_view(error.message).substr(0, kLongestError))
      .Field("code", ErrorCodeName(error.code))
      .EndObject()
      .Take();
}

Result<void> ErrorIn(std::string_view answer) {
  const auto error = JsonString(JsonMember(answer, "error"));
  if (!error) return {};
  return Fail(ErrorCodeFromName(JsonString(JsonMember(answer, "code")).value_or("")), *error);
}

}  // namespace overcap
