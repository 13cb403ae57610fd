// SPDX-License-Identifier: Apache-2.0
#include "control/auto_requests.h"

#include <cerrno>
#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "control/allocations.h"
#include "control/auto_leftovers.h"
#include "control/workspace_auto.h"
#include "model/json_fields.h"
#include "sys/clock.h"
#include "sys/posix_files.h"

namespace overcap {

std::string AutoRequestToJson(const AutoRequest& request) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "host", request.host);
  WriteBytes(&json, "folder", request.folder);
  json.Key("argv").BeginArray();
  for (const std::string& word : request.argv) WriteBytes(&json, word);
  return json.EndArray().EndObject().Take() + "\n";
}

Result<AutoRequest> AutoRequestFromJson(std::string_view text, const std::string& file) {
  const std::string what = StrCat("'", file, "'");
  OC_TRY(json, ParseJsonObject(text, what));
  FieldReader reader(json, what);
  AutoRequest request;
  reader.Read("host", &request.host);
  reader.Read("folder", &request.folder);
  reader.Read("argv", &request.argv);
  if (request.argv.empty()) reader.Bad("argv", "there");
  OC_TRY_VOID(reader.Check());
  request.argv = ReadOldAutoWords(request.argv);
  return request;
}

std::string AutoRequestFolder(const std::string& allocation_file) {
  constexpr std::string_view kEnding = ".json";
  const size_t size = allocation_file.size() - (allocation_file.ends_with(kEnding) ? kEnding.size() : 0);
  return allocation_file.substr(0, size) + ".auto";
}

std::vector<AutoRequest> TakeAutoRequests(const std::string& folder, std::string_view host) {
  PosixFiles files;
  std::vector<AutoRequest> taken;
  const auto names = files.List(folder);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const std::string file = StrCat(folder, "/", name);
    const auto text = files.Read(file);
    if (!text) continue;
    auto request = AutoRequestFromJson(*text, file);
    if (request && request->host != host) continue;
    // Who removes it has it: the one who asked may be taking it back.
    if (unlink(file.c_str()) == 0 && request) taken.push_back(std::move(*request));
  }
  return taken;
}

std::string AllocationFileOf(const std::vector<std::string>& roots, std::string_view job) {
  if (job.empty()) return "";
  for (const std::string& root : roots) {
    const AllocationBook book(root);
    for (const HeldAllocation& allocation : book.All()) {
      if (allocation.job == job) return book.PathOf(allocation.name);
    }
  }
  return "";
}

Result<pid_t> AskHolder(const std::string& allocation_file, const AutoRequest& request, int64_t patience_us) {
  PosixFiles files;
  const std::string folder = AutoRequestFolder(allocation_file);
  const std::string file = StrCat(folder, "/", getpid(), ".json");
  OC_TRY_VOID(files.MakeFolders(folder));
  OC_TRY_VOID(files.WriteAtomic(file, AutoRequestToJson(request), false));
  const PosixClock clock;
  int64_t until = clock.MonotonicUs() + patience_us;
  while (true) {
    if (const pid_t pid = AutoLockHolder(request.folder)) {
      (void)unlink(file.c_str());
      return pid;
    }
    if (clock.MonotonicUs() > until) {
      if (unlink(file.c_str()) == 0 || !files.Exists(folder)) return pid_t{0};
      // Taken in the last moment, or long ago and without success.
      if (clock.MonotonicUs() > until + patience_us) {
        return Fail(ErrorCode::kUnavailable, "the allocation's holder could not start the service",
                    "the allocation's log tells why");
      }
    }
    poll(nullptr, 0, 50);
  }
}

}  // namespace overcap
