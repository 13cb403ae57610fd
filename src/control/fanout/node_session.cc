// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/node_session.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/ssh/binary_copy.h"
#include "launch/ssh/ssh_transport.h"
#include "sys/pipe.h"

namespace overcap {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kConnect{15'000}, kSilence{60'000}, kCopy{120'000}, kLeave{10'000};
constexpr int kTurnMs = 200;
constexpr size_t kPendingMost = 8 << 20;
constexpr size_t kWordsMost = 4096;
constexpr const char* kVerb = "fanout-node";

std::mutex spawn_mutex;  // Spawn is for one thread at a time

struct EndPair {
  Fd ours, theirs;
};

Result<EndPair> MakeSockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(ErrnoError(errno, "cannot make a pair of sockets"));
  return EndPair{Fd(ends[0]), Fd(ends[1])};
}

std::string LastLine(const std::string& words) {
  const std::vector<std::string> lines = Split(Trim(words), '\n');
  return ToUtf8(Trim(lines.back()));
}

// Processors have instructions for it: a third of what ssh's first choice costs both ends.
constexpr const char* kQuickCipher = "Ciphers=^aes128-gcm@openssh.com";

// An old ssh, or one that is told by its configuration to be strict.
bool RefusesQuickWays(const std::string& words) {
  for (const char* sign : {"KexAlgorithms", "KEX algorithm", "cipher"}) {
    if (words.find(sign) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Result<SharedBinary::Copy> SharedBinary::Get() {
  const std::lock_guard lock(mutex_);
  if (made_) return *made_;
  Result<BinaryCopy> copy = BinaryCopy::Of(file_, OVERCAP_VERSION);
  if (!copy) {
    made_.emplace(Fail(copy.error()));
  } else {
    bytes_ = std::move(copy->bytes);
    copy->bytes = bytes_;
    made_.emplace(Copy{copy->StoreCommand(), copy->NodeCommand(kVerb), &bytes_});
  }
  return *made_;
}

NodeSession::NodeSession(int node, const FanoutSource& source, const FanoutRequest& request,
                         const std::string& key, SharedBinary* binary, SessionListener* listener)
    : node_(node),
      host_(request.hosts[static_cast<size_t>(node)]),
      source_(source),
      request_(request),
      key_(key),
      binary_(*binary),
      listener_(*listener),
      local_(IsThisHost(host_)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void NodeSession::Post(const fanout::ToNode& message) {
  std::string frame = fanout::Encode(message);
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(frame));
  const uint64_t one = 1;
  (void)!write(wake_.Get(), &one, sizeof one);
}

tl::unexpected<Error> NodeSession::Unusable(const std::string& why, ErrorCode code) const {
  return Fail(code, StrCat("host '", host_, "' cannot be used: ", why));
}

std::vector<std::string> NodeSession::SshWords(const std::string& command) const {
  std::vector<std::string> words = {request_.ssh_program};
  for (const std::string& option : request_.ssh_options) {
    if (plain_ways_ && option == kQuickKeyExchange) {
      words.pop_back();  // its -o
    } else {
      words.push_back(option);
    }
  }
  if (!plain_ways_) words.insert(words.end(), {"-o", kQuickCipher});
  words.insert(words.end(), {host_, "--", command});
  return words;
}

Result<void> NodeSession::Run() {
  for (bool again = true; again;) {
    again = false;
    Result<void> done = Attempt(&again);
    EndChild(again ? milliseconds(0) : kLeave, true);
    if (!again) return complete_ ? Result<void>() : std::move(done);
    if (Stopped()) return Fail(ErrorCode::kConflict, "stopped");
  }
  return {};
}

Result<void> NodeSession::Attempt(bool* again) {
  std::string command = StrCat(ShellQuote(request_.binary), " ", kVerb);
  if (copied_) {
    OC_TRY(copy, binary_.Get());
    command = copy.node_command;
  }
  OC_TRY_VOID(Connect(local_ ? std::vector<std::string>{request_.binary, kVerb} : SshWords(command)));
  Result<void> talked = Talk();
  if (talked || Stopped() || (greeted_ && !other_version_)) return talked;
  EndChild(milliseconds(2000), true);
  ReadWords();
  const int status = end_ ? end_->exit_status : -1;
  if (!plain_ways_ && status == 255 && RefusesQuickWays(words_)) {
    plain_ways_ = *again = true;
    return {};
  }
  if (!local_ && !copied_ && (other_version_ || status == 127 || status == 126)) {
    OC_TRY_VOID(CopyProgram());
    copied_ = *again = true;
    return {};
  }
  if (other_version_) return Unusable("it has another version of overcap", ErrorCode::kConflict);
  const std::string said = LastLine(words_);
  return said.empty() ? talked : Unusable(said);
}

Result<void> NodeSession::Connect(const std::vector<std::string>& argv) {
  OC_TRY(link, MakeSockets());
  OC_TRY(errors, MakePipe());
  SpawnRequest request;
  request.argv = argv;
  request.env = request_.env;
  request.stdin_fd = request.stdout_fd = link.theirs.Get();
  request.stderr_fd = errors.write.Get();
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  request.parent_death_signal = local_ ? 0 : SIGTERM;  // a node sees its link close
  {
    const std::lock_guard lock(spawn_mutex);
    Result<Spawned> spawned = Spawn(request);
    if (!spawned) return Unusable(spawned.error().message, spawned.error().code);
    child_ = *std::move(spawned);
  }
  end_.reset();
  words_.clear();
  greeted_ = other_version_ = false;
  errors_ = std::move(errors.read);
  (void)fcntl(errors_.Get(), F_SETFL, O_NONBLOCK);
  channel_.emplace(node_link::Ends{std::move(link.ours), Fd()}, node_link::Channel::Preamble::kExpected);
  heard_ = steady_clock::now();
  return {};
}

void NodeSession::ReadWords() {
  char bytes[1024];
  for (;;) {
    const ssize_t n = read(errors_.Get(), bytes, sizeof bytes);
    if (n <= 0) {
      if (n == 0) errors_.Reset();
      return;
    }
    words_.append(bytes, static_cast<size_t>(n));
    if (words_.size() > kWordsMost) words_.erase(0, words_.size() - kWordsMost);
  }
}

// Until the node has said its last word, or can say none any more.
Result<void> NodeSession::Talk() {
  for (;;) {
    if (Stopped()) return Fail(ErrorCode::kConflict, "stopped");
    if (greeted_) {
      const std::lock_guard lock(mutex_);
      for (const std::string& frame : posted_) channel_->Send(frame);
      posted_.clear();
    }
    const bool sent = channel_->Flush();
    const bool reads = channel_->Pending() < kPendingMost;
    pollfd fds[4] = {{reads ? channel_->ReadFd() : -1, POLLIN, 0},
                     {channel_->Pending() > 0 ? channel_->WriteFd() : -1, POLLOUT, 0},
                     {wake_.Get(), POLLIN, 0},
                     {errors_.Get(), POLLIN, 0}};
    (void)poll(fds, 4, kTurnMs);
    uint64_t count;
    if (fds[2].revents != 0) (void)!read(wake_.Get(), &count, sizeof count);
    if (fds[3].revents != 0) ReadWords();
    const bool open = fds[0].revents == 0 || channel_->Read();
    OC_TRY_VOID(TakeFrames());
    if (other_version_) return Fail(ErrorCode::kConflict, "another version");
    if (!open || !sent) {
      if (trouble_) return Fail(*trouble_);
      if (complete_) return {};
      return Unusable(greeted_ ? "the connection broke" : "the connection was closed");
    }
    const milliseconds patience = greeted_ ? kSilence : kConnect;
    if (steady_clock::now() - heard_ > patience)
      return Unusable(greeted_ ? "nothing was heard of it for 60 s" : "it did not answer within 15 s");
  }
}

Result<void> NodeSession::TakeFrames() {
  while (channel_->Pending() < kPendingMost) {
    OC_TRY(frame, channel_->Next());
    if (!frame) return {};
    heard_ = steady_clock::now();
    OC_TRY_VOID(Obey(*frame));
    if (other_version_) return {};
    (void)channel_->Flush();
  }
  return {};
}

Result<void> NodeSession::Obey(const std::string& frame) {
  Result<fanout::ToHead> message = fanout::DecodeToHead(frame);
  if (!message) return Unusable(message.error().message, message.error().code);
  if (const auto* hello = std::get_if<fanout::Hello>(&*message)) {
    greeted_ = true;
    other_version_ = hello->version != OVERCAP_VERSION || hello->protocol != fanout::kProtocol;
    if (other_version_) return {};
    Begin();
    listener_.OnHello(node_, *hello);
  } else if (const auto* ask = std::get_if<fanout::Ask>(&*message)) {
    listener_.OnAsk(node_, ask->why);
  } else if (const auto* get = std::get_if<fanout::Get>(&*message)) {
    Give(*get);
  } else if (const auto* progress = std::get_if<fanout::Progress>(&*message)) {
    listener_.OnProgress(node_, *progress);
  } else if (const auto* ready = std::get_if<fanout::Ready>(&*message)) {
    if (ready->failed > 0) {
      trouble_ =
          Error{ErrorCode::kUnavailable,
                StrCat("host '", host_, "': ", CountOf(ready->failed, "file"),
                       " could not be written: ", ready->problems.empty() ? "" : ToUtf8(ready->problems[0])),
                "run it again"};
      return Fail(*trouble_);
    }
    complete_ = true;
    listener_.OnReady(node_, *ready);
  } else if (const auto* trouble = std::get_if<fanout::Trouble>(&*message)) {
    trouble_ = trouble->error;
    trouble_->message = StrCat("host '", host_, "': ", ToUtf8(trouble->error.message));
    return Fail(*trouble_);
  }
  return {};
}

void NodeSession::Begin() {
  for (const fanout::Object& object : source_.objects) channel_->Send(fanout::Encode(fanout::ToNode(object)));
  channel_->Send(fanout::Encode(fanout::Start{fanout::kProtocol, source_.tree.Hex(), key_, request_.target,
                                              request_.old, request_.fix, request_.force}));
}

void NodeSession::Give(const fanout::Get& get) {
  std::string answer(get.chunks.size(), '\0');
  for (size_t i = 0; i < get.chunks.size(); ++i) {
    const size_t before = answer.size();
    answer.resize(before + get.chunks[i].size);
    if (source_.chunks.Read(get.chunks[i], answer.data() + before)) {
      answer[i] = '\1';
    } else {
      answer.resize(before);
    }
  }
  channel_->Send(fanout::Encode(fanout::Data{get.request, answer}));
}

Result<void> NodeSession::CopyProgram() {
  OC_TRY(copy, binary_.Get());
  OC_TRY_VOID(Connect(SshWords(copy.store_command)));
  channel_->SendRaw(*copy.bytes);
  const auto until = steady_clock::now() + kCopy;
  while (!Stopped() && steady_clock::now() < until && channel_->Flush() && channel_->Pending() > 0) {
    pollfd fds[2] = {{channel_->WriteFd(), POLLOUT, 0}, {child_.pidfd.Get(), POLLIN, 0}};
    (void)poll(fds, 2, kTurnMs);
    if (fds[1].revents != 0) break;  // it is there already, or cannot be copied
  }
  (void)shutdown(channel_->WriteFd(), SHUT_WR);
  EndChild(kCopy, false);
  ReadWords();
  if (end_ && end_->ok()) {
    listener_.OnNote(StrCat("overcap was copied to host '", host_, "', which did not have this version"));
    return {};
  }
  const std::string said = LastLine(words_);
  return Unusable(StrCat("it has no overcap of this version, and none could be copied there",
                         said.empty() ? "" : ": ", said));
}

// Waits so long for its end, then ends it. `hang_up`: the connection is closed first.
void NodeSession::EndChild(milliseconds patience, bool hang_up) {
  if (child_.pid < 0) return;
  const auto until = steady_clock::now() + patience;
  if (hang_up) channel_.reset();  // its sign to go
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child_.pid, &status, WNOHANG);
    if (ended == child_.pid) {
      end_ = ProcessEndOf(status);
      break;
    }
    if (ended < 0 && errno != EINTR) break;
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) {
      (void)kill(-child_.pid, SIGKILL);
      (void)kill(child_.pid, SIGKILL);
    }
    pollfd fds[2] = {{child_.pidfd.Get(), POLLIN, 0}, {errors_.Get(), POLLIN, 0}};
    (void)poll(fds, 2, static_cast<int>(std::clamp<int64_t>(left.count(), 20, kTurnMs)));
    if (fds[1].revents != 0) ReadWords();
  }
  child_ = {};
}

}  // namespace overcap
