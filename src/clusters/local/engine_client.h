// SPDX-License-Identifier: Apache-2.0
// Talks to the embedded engine over its socket (docs/formats/api.md) and starts it at the first need.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Why a request has no answer yet.
enum class EngineTrouble {
  kNoEngine,  // no process listens at the socket
  kBroken,    // the connection broke before the answer came
  kCrowded,   // the engine refuses further connections of this user for now
  kSilent,    // the engine has the request and does not answer
  kRefused,   // any other error: asking again does not change it
};

struct EngineRetry {
  bool again = false;
  std::chrono::milliseconds pause{0};  // before the next try
  bool tell = false;                   // it has lasted so long that the user should hear of it
};

// What to do about a request without an answer, `lasted` after the trouble began. It may be repeated for
// `limit`.
EngineRetry DecideRetry(EngineTrouble trouble, std::chrono::milliseconds lasted,
                        std::chrono::milliseconds limit);

constexpr std::chrono::seconds kEngineRetryTime{30};
// How long to repeat a request: OVERCAP_RETRY in seconds, 0 to 3600; any other text means kEngineRetryTime.
std::chrono::seconds EngineRetryTimeOf(std::string_view text);
// From OVERCAP_RETRY in the environment of this process.
std::chrono::seconds EngineRetryTime();

struct EngineRequest {
  std::string text;
  std::chrono::seconds due{0};  // the engine may take this long to answer; 0: it answers at once
};

// Takes a line for the user when a client of this process waits for the engine; until it is set clients wait
// silently.
void SetEngineNotice(std::function<void(std::string_view line)> say);

class EngineClient {
 public:
  struct Options {
    std::string root;
    std::string binary;                         // started as `<binary> daemon --root <root>`; empty: never
    std::function<std::string()> machine_json;  // told to an engine that this client has started
    std::string socket = {};                    // "": daemon.sock in the root
    bool of_root = false;                       // only root's process may be at the other end
    std::function<void(const std::string&)> tell = {};         // takes each new problem()
    std::chrono::milliseconds retry_time = EngineRetryTime();  // 0: one try
  };
  explicit EngineClient(Options options) : options_(std::move(options)) {}

  // Sends one request and gives the text of the reply's `ok`, or its error. An engine that does not listen is
  // started. When there is no connection or it breaks, the request is sent again for `retry_time`, so it must
  // be idempotent. After a call that has given up, further calls try once until one is answered. For an
  // engine that keeps the connection open and is silent the client waits a minute beyond `due`.
  Result<std::string> Call(std::string_view text, std::chrono::seconds due = {});
  // The same with a request that `make` returns for each try. `subject`: the id of the job that it submits,
  // for the notice to the user; "": it submits none.
  Result<std::string> Call(const std::function<EngineRequest()>& make, const std::string& subject = {});

  // Whether the last Call() had to send its request more than once: an earlier one may have been done.
  bool resent() const { return sent_ > 1; }
  // Whether the last Call() failed although the engine may have done what was asked.
  bool maybe_done() const { return maybe_done_; }

  // Why the engine cannot write, as its last reply said; empty: it can.
  const std::string& problem() const { return problem_; }

 private:
  struct Attempt {
    EngineTrouble trouble = EngineTrouble::kRefused;
    Result<std::string> answer;  // the text of `ok`, or an error; with a trouble when there is no answer
    bool answered = false;
  };
  Attempt Try(const EngineRequest& request, const std::string& subject);
  Attempt Exchange(const EngineRequest& request, const std::string& subject);
  void AwaitAnswer(std::chrono::seconds due, const std::string& subject);
  void TakeProblem(std::string_view frame);
  Result<void> Connect(EngineTrouble* trouble);
  void Tell(const std::string& line, const std::string& subject);

  Options options_;
  Fd connection_;
  int sent_ = 0;
  bool maybe_done_ = false;
  bool told_ = false;     // of the trouble of this call
  bool gave_up_ = false;  // the last call had no answer
  std::string problem_;
};

// What the frame of a reply says: the text of `ok`, or the error.
Result<std::string> OpenReply(std::string frame);

}  // namespace overcap
