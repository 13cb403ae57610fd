// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/courier.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include "agent/courier/courier_message.h"
#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "model/json_fields.h"
#include "sys/clock.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/random.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kLongestUs = 3600 * kSecond;  // for code; it is much, or the store is slow
constexpr int64_t kAnswerUs = 150 * kSecond;    // stores try for 90 s
constexpr int64_t kStartUs = 60 * kSecond;
constexpr int64_t kSlackUs = 5 * kSecond;  // over the time that it was given
constexpr int kLookMs = 20;
constexpr size_t kNamesAtOnce = 200;

std::string Message(std::string_view what, std::string_view key = {}, std::string_view value = {},
                    std::string_view second = {}, std::string_view other = {}) {
  JsonWriter out;
  out.BeginObject().Field("do", what);
  if (!key.empty()) WriteBytes(&out, key, value);
  if (!second.empty()) WriteBytes(&out, second, other);
  return out.EndObject().Take();
}

}  // namespace

std::string CourierRest::Text() const {
  if (lost) return "what the ranks have written may be missing in the store: the courier was killed";
  return StrCat(FormatBytes(unsent), " of logs and reports could not be uploaded in time",
                why.empty() ? "" : StrCat(": ", why));
}

Result<Courier> Courier::Start(const CourierOptions& options) {
  Courier courier(options);
  OC_TRY_VOID(courier.Connect());
  return courier;
}

Result<void> Courier::Connect() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(ErrnoError(errno, "cannot make a socket for the courier"));
  Fd ours(ends[0]), theirs(ends[1]);
  SpawnRequest request;
  request.program = OwnProgram();
  request.argv = {"overcap", "agent"};
  const std::vector<std::string> words = CourierWords(options_);
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.env = Variables::OfThisProcess().entries();
  request.cwd = "/";
  request.stdin_fd = theirs.Get();
  request.stderr_fd = 2;
  request.group = ProcessGroup::kSession;
  OC_TRY(spawned, Spawn(request));
  // It leaves its place to a child at once.
  if (!EndedWithin(spawned.pid, kStartUs))
    return Fail(ErrorCode::kUnavailable,
                "the courier, which carries code and logs, did not start within 60s");
  line_ = std::move(ours);
  return {};
}

Result<void> Courier::Send(const std::string& message) {
  for (int i = 0; i < 500; ++i) {
    if (send(line_.Get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno != EAGAIN && errno != EINTR) break;
    pollfd writable{line_.Get(), POLLOUT, 0};
    (void)poll(&writable, 1, kLookMs);
  }
  return Fail(ErrorCode::kUnavailable, "the courier, which carries code and logs, is gone");
}

Result<std::string> Courier::Receive(int64_t timeout_us, Supervisor* supervisor) {
  const PosixClock clock;
  const int64_t end_us = clock.MonotonicUs() + timeout_us;
  std::string answer(kMostMessage, '\0');
  while (clock.MonotonicUs() < end_us) {
    if (supervisor != nullptr && supervisor->CancelRequested())
      return Fail(ErrorCode::kConflict, "stopped while the store was asked");
    pollfd readable{line_.Get(), POLLIN, 0};
    if (poll(&readable, 1, kLookMs) <= 0) continue;
    const ssize_t size = recv(line_.Get(), answer.data(), answer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    answer.resize(static_cast<size_t>(size));
    return answer;
  }
  line_.Reset();  // what it would say later answers another question
  return Fail(ErrorCode::kUnavailable, "the courier, which carries code and logs, does not answer");
}

Result<std::string> Courier::Ask(const std::string& message, int64_t timeout_us, Supervisor* supervisor) {
  OC_TRY_VOID(Send(message));
  OC_TRY(answer, Receive(timeout_us, supervisor));
  OC_TRY_VOID(ErrorIn(answer));
  return answer;
}

Result<void> Courier::Bring(const std::vector<std::string>& prefixes, int64_t timeout_us,
                            Supervisor* supervisor) {
  OC_TRY_VOID(Ask(JsonWriter().BeginObject().Field("do", "bring").Field("names", prefixes).EndObject().Take(),
                  timeout_us, supervisor));
  return {};
}

Result<void> Courier::BringCancel(int64_t timeout_us) {
  OC_TRY_VOID(Ask(Message("cancel"), timeout_us, nullptr));
  return {};
}

Result<std::string> Courier::Create(const std::string& name, Supervisor* supervisor) {
  OC_TRY(answer, Ask(Message("create", "name", name), kAnswerUs, supervisor));
  return JsonString(JsonMember(answer, "text")).value_or("");
}

Result<void> Courier::Code(const std::string& tree, const std::string& to, Supervisor* supervisor) {
  OC_TRY_VOID(Ask(Message("code", "tree", tree, "to", to), kLongestUs, supervisor));
  return {};
}

Result<std::string> Courier::Blob(const std::string& id, Supervisor* supervisor) {
  KernelRandom random;
  const std::string path = StrCat(options_.job_dir, "/.blob-", random.Next());
  auto asked = Ask(Message("blob", "id", id, "to", path), kAnswerUs, supervisor);
  PosixFiles files;
  auto bytes = asked ? files.Read(path) : Result<std::string>(Fail(asked.error()));
  (void)files.Remove(path);
  return bytes;
}

void Courier::Track(const std::vector<std::string>& names) {
  for (size_t begin = 0; begin < names.size(); begin += kNamesAtOnce) {
    const std::vector<std::string> some(
        names.begin() + static_cast<std::ptrdiff_t>(begin),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), begin + kNamesAtOnce)));
    // A courier that is gone hears of them when it is started again.
    (void)Send(JsonWriter().BeginObject().Field("do", "track").Field("names", some).EndObject().Take());
  }
  tracked_.insert(tracked_.end(), names.begin(), names.end());
}

void Courier::Done(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    (void)Send(JsonWriter()
                   .BeginObject()
                   .Field("do", "done")
                   .Field("names", std::vector<std::string>{name})
                   .EndObject()
                   .Take());
}

CourierRest Courier::Rest(std::string_view what, int64_t seconds) {
  const std::string message =
      JsonWriter().BeginObject().Field("do", what).Field("seconds", seconds).EndObject().Take();
  const int64_t timeout_us = seconds * kSecond + kSlackUs;
  auto answer = Ask(message, timeout_us, nullptr);
  if (!answer && !line_.Valid()) answer = Fail(ErrorCode::kUnavailable, "it took too long");
  if (!answer && Connect()) {
    Track(std::vector<std::string>(std::exchange(tracked_, {})));
    answer = Ask(message, timeout_us, nullptr);
  }
  if (!answer) return {0, answer.error().message, true};
  return {ParseInt(JsonMember(*answer, "unsent")).value_or(0),
          JsonString(JsonMember(*answer, "why")).value_or(""), false};
}

CourierRest Courier::Drain(int64_t seconds) {
  return Rest("drain", seconds);
}

CourierRest Courier::Finish(int64_t seconds) {
  return Rest("finish", seconds);
}

}  // namespace overcap
