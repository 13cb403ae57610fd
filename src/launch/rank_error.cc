// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_error.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_fields.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostErrorFile = 1 << 20;

std::string TextIn(const nlohmann::json& json, const char* key) {
  const auto at = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

RankError ParseErrorFile(const std::string& text) {
  RankError error;
  const auto json = ParseJsonObject(text, "error file");
  if (!json || !json->contains("message")) return error;
  const nlohmann::json& message = (*json)["message"];
  if (message.is_string()) {
    error.message = message.get<std::string>();
  } else if (message.is_object()) {
    error.message = TextIn(message, "message");
    const auto extra = message.find("extraInfo");
    if (extra != message.end()) error.traceback = TextIn(*extra, "py_callstack");
  }
  const std::vector<std::string> lines = Split(Trim(error.message), '\n');
  if (error.traceback.empty() && lines.size() > 1) error.traceback = error.message;
  error.message = ToUtf8(lines.size() > 1 ? Trim(lines.back()) : Trim(error.message)).substr(0, 500);
  return error;
}

RankError ReadErrorFile(const std::string& path) {
  const auto text = PosixFiles().ReadRange(path, 0, kMostErrorFile);
  return text ? ParseErrorFile(*text) : RankError();
}

Result<void> HandErrorOn(const std::string& error_file, int exit_status, std::string_view users_file) {
  const auto text = PosixFiles().ReadRange(error_file, 0, kMostErrorFile);
  if (users_file.empty() || users_file == error_file || !text) return {};
  auto json = ParseJsonObject(*text, "error file");
  if (!json) return {};
  const auto message = json->find("message");
  if (message != json->end() && message->is_object()) (*message)["errorCode"] = exit_status;
  return PosixFiles().WriteAtomic(std::string(users_file), json->dump(), false);
}

}  // namespace overcap
