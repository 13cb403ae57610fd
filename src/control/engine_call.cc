// SPDX-License-Identifier: Apache-2.0
#include "control/engine_call.h"

#include <chrono>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "net/frame.h"
#include "net/unix_socket.h"
#include "sys/variables.h"

namespace overcap {
namespace {

using std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr std::chrono::milliseconds kPatience{5000};

Result<Fd> ConnectEngine(const std::string& socket) {
  auto connection = ConnectUnix(socket, kPatience);
  if (connection) return connection;
  const ErrorCode code = connection.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kUnavailable) {
    return Fail(ErrorCode::kNotFound, "no engine is running", "the next 'overcap submit' starts it");
  }
  return connection;
}

// The `ok` of the reply, or its error.
Result<Json> Ask(const Fd& connection, std::string_view op) {
  const auto deadline = steady_clock::now() + kPatience;
  OC_TRY_VOID(SendFrame(connection, StrCat("{\"op\":\"", op, "\"}"), deadline));
  OC_TRY(text, ReceiveFrame(connection, deadline));
  Json reply = Json::parse(text, nullptr, false);
  if (reply.is_object() && reply.contains("ok")) return std::move(reply["ok"]);
  if (!reply.is_object() || !reply.contains("error"))
    return Fail(ErrorCode::kCorrupt, "the engine's reply is no reply");
  const Json& error = reply["error"];
  return Fail(ErrorCodeFromName(error.value("code", "")), error.value("message", ""),
              error.value("hint", ""));
}

// The process at the other end; 0: not known.
pid_t PidBehind(const Fd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.Get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

// A descriptor that becomes readable when that process has ended; none where the kernel has no such.
Fd DescriptorOf(pid_t pid) {
  return pid > 0 ? Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) : Fd();
}

// An engine that takes connections and does nothing else: stopped, or stuck.
tl::unexpected<Error> Hangs(pid_t pid, std::string what) {
  if (pid <= 0) return Fail(ErrorCode::kUnavailable, std::move(what));
  return Fail(ErrorCode::kUnavailable, StrCat(what, "; it is process ", pid),
              StrCat("kill -CONT ", pid, " lets a stopped one go on; kill -9 ", pid,
                     " ends it: running jobs go on and the next engine finds them"));
}

EngineStatus ReadStatus(const Json& reply) {
  EngineStatus status;
  status.version = reply.value("version", "");
  status.pid = reply.value("pid", 0);
  status.socket = reply.value("socket", "");
  status.uptime_seconds = reply.value("uptime_s", int64_t{0});
  status.journal_bytes = reply.value("journal_bytes", int64_t{0});
  status.policy = reply.value("policy", "");
  status.problem = reply.value("problem", "");
  status.gpu_problem = reply.value("gpu_problem", "");
  status.policy_problem = reply.value("policy_problem", "");
  status.gpus_free = reply.value("gpus_free", int64_t{0});
  if (const auto counts = reply.find("counts"); counts != reply.end()) {
    for (const auto& [state, count] : counts->items()) status.counts[state] = count.get<int64_t>();
  }
  status.json = reply.dump(-1, ' ', false, Json::error_handler_t::replace);
  return status;
}

}  // namespace

std::string EngineSocket(const std::string& root, bool system) {
  if (!system) return root + "/daemon.sock";
  for (const std::string& name : ClusterDrivers()) {
    const DriverTraits* driver = FindDriver(name);
    if (driver->socket.empty()) continue;
    const std::string named(Variables::OfThisProcess().Get(driver->machine_variable));
    return named.empty() ? std::string(driver->socket) : named;
  }
  return {};
}

Result<EngineStatus> GetEngineStatus(const std::string& socket) {
  OC_TRY(connection, ConnectEngine(socket));
  OC_TRY(reply, Ask(connection, "status"));
  try {
    return ReadStatus(reply);
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kCorrupt, StrCat("the engine's status cannot be read: ", error.what()),
                "it may be of another version: 'overcap daemon stop'");
  }
}

Result<void> StopEngine(const std::string& socket, int patience_seconds) {
  OC_TRY(connection, ConnectEngine(socket));
  const pid_t pid = PidBehind(connection);
  const Fd process = DescriptorOf(pid);
  try {
    auto reply = Ask(connection, "stop");
    if (!reply && reply.error().code == ErrorCode::kUnavailable) {
      return Hangs(pid, StrCat("the engine does not answer: ", reply.error().message));
    }
    OC_TRY_VOID(std::move(reply));
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kCorrupt, StrCat("the engine's reply cannot be read: ", error.what()));
  }
  // Its lock is free only when the process is gone, so that the next one can start at once.
  pollfd ended = {process ? process.Get() : connection.Get(), POLLIN, 0};
  if (poll(&ended, 1, patience_seconds * 1000) > 0) return {};
  return Hangs(pid, StrCat("the engine has not ended after ", patience_seconds, " s"));
}

}  // namespace overcap
