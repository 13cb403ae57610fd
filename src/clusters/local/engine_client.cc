// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/engine_client.h"

#include <algorithm>
#include <poll.h>
#include <thread>
#include <utility>

#include "base/json_scan.h"
#include "base/text.h"
#include "clusters/local/engine_start.h"
#include "net/frame.h"
#include "net/unix_socket.h"
#include "sys/variables.h"

namespace overcap {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr milliseconds kConnectTimeout{5000};
constexpr seconds kConfigurePatience{10};
constexpr seconds kSilence{60};     // how long an engine that has the request may be silent
constexpr seconds kTellSilence{3};  // after that the user hears of it
constexpr milliseconds kTellTrouble{1000};
constexpr milliseconds kSteady{1000};  // a connection that has lasted this long was a good one
constexpr milliseconds kShortestPause{10}, kLongestPause{500};

std::function<void(std::string_view line)>& Notice() {
  static std::function<void(std::string_view line)> notice;
  return notice;
}

std::string Text(std::string_view object, std::string_view key) {
  return JsonString(JsonMember(object, key)).value_or("");
}

bool NobodyListens(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kUnavailable;
}

// The engine closes such a connection without reading the request. Older engines have no word for it.
bool IsCrowded(std::string_view frame) {
  const std::string_view error = JsonMember(frame, "error");
  if (error.empty()) return false;
  return Text(error, "code") == "crowded" || Text(error, "word") == "crowded" ||
         Text(error, "message").find(" connections to the engine already") != std::string::npos;
}

}  // namespace

EngineRetry DecideRetry(EngineTrouble trouble, milliseconds lasted, milliseconds limit) {
  if (trouble == EngineTrouble::kSilent || trouble == EngineTrouble::kRefused || lasted >= limit) return {};
  const milliseconds pause = std::clamp(lasted / 8, kShortestPause, kLongestPause);
  return {.again = true, .pause = std::min(pause, limit - lasted), .tell = lasted >= kTellTrouble};
}

seconds EngineRetryTimeOf(std::string_view text) {
  constexpr int64_t kMost = 3600;
  const auto value = ParseInt(text);
  return value && *value >= 0 && *value <= kMost ? seconds(*value) : kEngineRetryTime;
}

seconds EngineRetryTime() {
  return EngineRetryTimeOf(Variables::OfThisProcess().Get("OVERCAP_RETRY"));
}

void SetEngineNotice(std::function<void(std::string_view line)> say) {
  Notice() = std::move(say);
}

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

Result<std::string> EngineClient::Call(std::string_view text, seconds due) {
  return Call([&] { return EngineRequest{std::string(text), due}; });
}

Result<std::string> EngineClient::Call(const std::function<EngineRequest()>& make,
                                       const std::string& subject) {
  sent_ = 0;
  maybe_done_ = told_ = false;
  const milliseconds limit = gave_up_ ? milliseconds(0) : options_.retry_time;
  auto trouble_began = steady_clock::time_point::max();
  while (true) {
    const EngineRequest request = make();
    const auto asked = steady_clock::now();
    Attempt attempt = Try(request, subject);
    gave_up_ = !attempt.answered && attempt.trouble != EngineTrouble::kRefused;
    if (attempt.answered) {
      maybe_done_ = false;
      return std::move(attempt.answer);
    }
    connection_.Reset();
    const auto now = steady_clock::now();
    // A wait may last for days: each restart of the engine during it starts the retry time again.
    const bool was_steady = request.due > seconds(0) && now - asked > kSteady;
    if (trouble_began > now || (attempt.trouble == EngineTrouble::kBroken && was_steady)) trouble_began = now;
    const EngineRetry retry =
        DecideRetry(attempt.trouble, duration_cast<milliseconds>(now - trouble_began), limit);
    if (!retry.again) return std::move(attempt.answer);
    if (retry.tell) {
      const bool crowded = attempt.trouble == EngineTrouble::kCrowded;
      Tell(StrCat(crowded ? attempt.answer.error().message : "the engine does not answer",
                  "; trying again for ", duration_cast<seconds>(limit).count(), " s"),
           subject);
    }
    std::this_thread::sleep_for(retry.pause);
  }
}

void EngineClient::Tell(const std::string& line, const std::string& subject) {
  if (told_ || !Notice()) return;
  told_ = true;
  const bool maybe = maybe_done_ && !subject.empty();
  Notice()(maybe ? StrCat(line, " (job '", subject, "' may be queued already)") : line);
}

void EngineClient::TakeProblem(std::string_view frame) {
  constexpr std::string_view kProblem = "{\"ok\":{\"problem\":";
  const std::string before = std::exchange(problem_, "");
  if (frame.starts_with(kProblem)) problem_ = Text(JsonMember(frame, "ok"), "problem");
  if (options_.tell && !problem_.empty() && problem_ != before) options_.tell(problem_);
}

EngineClient::Attempt EngineClient::Try(const EngineRequest& request, const std::string& subject) {
  EngineTrouble trouble = EngineTrouble::kRefused;
  if (auto connected = Connect(&trouble); !connected)
    return {trouble, Fail(std::move(connected).error()), false};
  return Exchange(request, subject);
}

EngineClient::Attempt EngineClient::Exchange(const EngineRequest& request, const std::string& subject) {
  const auto deadline = steady_clock::now() + request.due + kSilence;
  auto sent = SendFrame(connection_, request.text, deadline);
  if (sent) {
    ++sent_;
    maybe_done_ = true;
    AwaitAnswer(request.due, subject);
  }
  // An engine that refuses the connection answers without reading the request, so its answer is read even
  // when sending has failed.
  auto frame = ReceiveFrame(connection_, sent ? deadline : steady_clock::now());
  if (frame && IsCrowded(*frame)) {
    if (sent) --sent_;
    maybe_done_ = sent_ > 0;
    return {EngineTrouble::kCrowded, OpenReply(std::move(*frame)), false};
  }
  if (frame) {
    TakeProblem(*frame);
    return {EngineTrouble::kRefused, OpenReply(std::move(*frame)), true};
  }
  const Error& error = sent ? frame.error() : sent.error();
  if (error.code != ErrorCode::kUnavailable) return {EngineTrouble::kRefused, Fail(error), false};
  const bool silent = sent && steady_clock::now() >= deadline;
  return {
      silent ? EngineTrouble::kSilent : EngineTrouble::kBroken,
      Fail(ErrorCode::kUnavailable, StrCat("the engine does not answer: ", error.message),
           "`overcap daemon status` tells more; `overcap daemon stop` lets the next command start it again"),
      false};
}

// Returns when there is something to read, or when the user has been notified of the silence.
void EngineClient::AwaitAnswer(seconds due, const std::string& subject) {
  pollfd entry{connection_.Get(), POLLIN, 0};
  const auto until = steady_clock::now() + due + kTellSilence;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return;
    if (left > 0) continue;
    Tell(StrCat("the engine has not answered for ", kTellSilence.count(), " s; waiting up to ",
                kSilence.count(), " s"),
         subject);
    return;
  }
}

Result<void> EngineClient::Connect(EngineTrouble* trouble) {
  if (connection_) return {};
  const std::string socket = options_.socket.empty() ? options_.root + "/daemon.sock" : options_.socket;
  auto connected = ConnectUnix(socket, kConnectTimeout);
  if (!connected && NobodyListens(connected.error()) && !options_.binary.empty()) {
    OC_TRY(started, StartEngine(options_.binary, options_.root));
    connection_ = std::move(started);
    // What this caller declares; the engine keeps what it has while jobs need it.
    const std::string configure = StrCat("{\"op\":\"configure\",\"machine\":", options_.machine_json(), "}");
    const auto deadline = steady_clock::now() + kConfigurePatience;
    *trouble = EngineTrouble::kBroken;
    OC_TRY_VOID(SendFrame(connection_, configure, deadline));
    OC_TRY(frame, ReceiveFrame(connection_, deadline));
    *trouble = EngineTrouble::kRefused;
    OC_TRY_VOID(OpenReply(std::move(frame)));
    return {};
  }
  if (!connected && NobodyListens(connected.error())) *trouble = EngineTrouble::kNoEngine;
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
