// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/engine_client.h"

#include "base/json_scan.h"
#include "base/text.h"
#include "clusters/local/engine_start.h"
#include "net/frame.h"
#include "net/unix_socket.h"

namespace overcap {
namespace {

using std::chrono::steady_clock;

constexpr int kMostTries = 5;
constexpr std::chrono::milliseconds kConnectTimeout{5000};

std::string Text(std::string_view object, std::string_view key) {
  return JsonString(JsonMember(object, key)).value_or("");
}

bool NobodyListens(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kUnavailable;
}

}  // namespace

Result<std::string> OpenReply(std::string frame) {
  constexpr std::string_view kOk = "{\"ok\":";
  if (frame.starts_with(kOk) && frame.ends_with('}')) {
    frame.pop_back();
    frame.erase(0, kOk.size());
    return frame;
  }
  const std::string_view error = JsonMember(frame, "error");
  if (error.empty()) return Fail(ErrorCode::kInternal, "the engine's reply cannot be read");
  return Fail(ErrorCodeFromName(Text(error, "code")), Text(error, "message"), Text(error, "hint"));
}

Result<std::string> EngineClient::Call(std::string_view request, std::chrono::seconds patience) {
  const auto deadline = steady_clock::now() + patience;
  resent_ = false;
  for (int tries = 1;; ++tries) {
    OC_TRY_VOID(Connect());
    auto frame = Exchange(request, patience);
    if (frame) return OpenReply(std::move(*frame));
    connection_.Reset();
    if (frame.error().code != ErrorCode::kUnavailable) return Fail(std::move(frame).error());
    if (steady_clock::now() >= deadline || tries == kMostTries) {
      return Fail(
          ErrorCode::kUnavailable, StrCat("the engine does not answer: ", frame.error().message),
          "`overcap daemon status` tells more; `overcap daemon stop` lets the next command start it anew");
    }
    resent_ = true;
  }
}

Result<std::string> EngineClient::Exchange(std::string_view request, std::chrono::seconds patience) {
  const auto deadline = steady_clock::now() + patience;
  OC_TRY_VOID(SendFrame(connection_, request, deadline));
  return ReceiveFrame(connection_, deadline);
}

Result<void> EngineClient::Connect() {
  if (connection_) return {};
  const std::string socket = options_.socket.empty() ? options_.root + "/daemon.sock" : options_.socket;
  auto connected = ConnectUnix(socket, kConnectTimeout);
  if (!connected && NobodyListens(connected.error()) && !options_.binary.empty()) {
    OC_TRY(started, StartEngine(options_.binary, options_.root));
    connection_ = std::move(started);
    // What this caller declares; the engine keeps what it has while jobs need it.
    const std::string configure = StrCat("{\"op\":\"configure\",\"machine\":", options_.machine_json(), "}");
    OC_TRY(frame, Exchange(configure, std::chrono::seconds(10)));
    OC_TRY_VOID(OpenReply(std::move(frame)));
    return {};
  }
  if (!connected && options_.of_root && NobodyListens(connected.error())) {
    return Fail(ErrorCode::kUnavailable,
                StrCat("the engine of this machine does not listen at '", socket, "'"),
                "an administrator starts it: systemctl start overcap");
  }
  if (!connected) return Fail(std::move(connected).error());
  if (const auto uid = PeerUid(*connected); options_.of_root && (!uid || *uid != 0)) {
    return Fail(ErrorCode::kDenied, StrCat("who listens at '", socket, "' is not root"),
                "unset OVERCAP_SYSTEM_SOCKET, or tell an administrator");
  }
  connection_ = std::move(*connected);
  return {};
}

}  // namespace overcap
