// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/pipe.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr size_t kMostSaid = 4096;
constexpr size_t kPipeBytes = 1 << 20;

Result<PipeEnds> MakeWidePipe() {
  OC_TRY(ends, MakePipe());
  (void)fcntl(ends.read.Get(), F_SETPIPE_SZ, kPipeBytes);
  return ends;
}

// Who writes into a pipe that nobody reads is killed by a signal; into a socket it is told.
Result<PipeEnds> MakeSockets() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return Fail(ErrnoError(errno, "cannot make a pair of sockets"));
  for (const int fd : fds) {
    const int bytes = kPipeBytes;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  return PipeEnds{Fd(fds[0]), Fd(fds[1])};
}

void SetNonBlocking(const Fd& fd) {
  (void)fcntl(fd.Get(), F_SETFL, fcntl(fd.Get(), F_GETFL) | O_NONBLOCK);
}

std::string LastLine(std::string_view text) {
  std::string_view rest = Trim(text);
  return std::string(Trim(rest.substr(rest.rfind('\n') + 1)));
}

bool Holds(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

std::vector<std::string> SshWords(const SftpTarget& target) {
  std::vector<std::string> words = {target.program,
                                    "-oBatchMode=yes",
                                    "-oConnectTimeout=15",
                                    "-oServerAliveInterval=15",
                                    "-oServerAliveCountMax=3",
                                    "-oClearAllForwardings=yes",
                                    "-oForwardX11=no",
                                    "-oForwardAgent=no",
                                    "-oPermitLocalCommand=no",
                                    "-oRequestTTY=no"};
  if (!target.user.empty()) words.insert(words.end(), {"-l", target.user});
  if (target.port > 0) words.insert(words.end(), {"-p", std::to_string(target.port)});
  std::string host = target.host;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  words.insert(words.end(), {"-s", "--", host, "sftp"});
  return words;
}

Error SshError(const SftpTarget& target, std::string_view words) {
  const std::string line = LastLine(words);
  const std::string shown = line.empty() ? "ssh ended without a word" : ToUtf8(line);
  Error error{ErrorCode::kUnavailable, StrCat("cannot reach ", Quoted(target.location, 300), ": ", shown),
              ""};
  const std::string try_it = StrCat("ssh ", target.port > 0 ? StrCat("-p ", target.port, " ") : "",
                                    target.user.empty() ? "" : target.user + "@", target.host);
  if (Holds(words, {"Permission denied", "Too many authentication failures", "No more authentication"})) {
    error.code = ErrorCode::kDenied;
    error.hint = StrCat("'", try_it, "' must work without a password: ssh-copy-id, or an agent");
  } else if (Holds(words, {"Host key verification failed", "IDENTIFICATION HAS CHANGED"})) {
    error.code = ErrorCode::kDenied;
    error.hint = StrCat("'", try_it, "' asks whether this is the right host");
  } else if (Holds(words, {"Could not resolve hostname", "Name or service not known"})) {
    error.hint = "see whether the host's name is right";
  } else if (Holds(words, {"subsystem request failed"})) {
    error.hint = "sshd of that host offers no sftp (Subsystem in sshd_config)";
  } else {
    error.hint = StrCat("see whether '", try_it, "' works, then try again");
  }
  return error;
}

Result<std::shared_ptr<SftpLink>> SftpLink::Start(const SftpTarget& target) {
  OC_TRY(in, MakeSockets());
  OC_TRY(out, MakeWidePipe());
  OC_TRY(words, MakeWidePipe());
  SpawnRequest request;
  request.argv = SshWords(target);
  request.env = target.env;
  request.stdin_fd = in.read.Get();
  request.stdout_fd = out.write.Get();
  request.stderr_fd = words.write.Get();
  request.group = ProcessGroup::kGroup;  // Ctrl-C is for us: what is under way may end
  OC_TRY(spawned, Spawn(request));
  std::shared_ptr<SftpLink> link(new SftpLink(target));
  link->pid_ = spawned.pid;
  link->to_ = std::move(in.write);
  link->from_ = std::move(out.read);
  link->words_ = std::move(words.read);
  for (const Fd* fd : {&link->to_, &link->from_, &link->words_}) SetNonBlocking(*fd);
  in.read.Reset(), out.write.Reset(), words.write.Reset();
  OC_TRY_VOID(link->Greet());
  try {
    link->listener_ = std::thread([raw = link.get()] { raw->Listen(); });
  } catch (const std::system_error& error) {  // so many as one may have
    return Fail(ErrorCode::kUnavailable, StrCat("no thread can be started: ", strerror(error.code().value())),
                "see how many there may be ('ulimit -u'), and end other programs");
  }
  link->AskLimits();
  return link;
}

SftpLink::~SftpLink() {
  Die("closed");
  to_.Reset();  // ssh ends when nobody speaks any more
  if (listener_.joinable()) listener_.join();
  from_.Reset();
  // It has nothing more to do; one that hangs in the network is not waited for.
  if (pid_ > 0) {
    for (int i = 0; i < 50; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
      poll(nullptr, 0, 10);
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

Result<void> SftpLink::Greet() {
  OC_TRY_VOID(Write(SftpInit(), {}, {}));
  const PosixClock clock;
  const int64_t end = clock.MonotonicUs() + target_.greeting_us;
  std::string bytes;
  SftpFrame frame;
  while (true) {
    const SftpFraming framing = TakeSftpFrame(bytes, &frame);
    if (framing == SftpFraming::kWhole && frame.type == SftpType::kVersion) break;
    if (framing != SftpFraming::kMore)
      return Fail(ErrorCode::kUnavailable,
                  StrCat(Quoted(target_.location, 300),
                         " answers with something that is no SFTP: ", Quoted(bytes, 60)),
                  "a shell's start-up file there may print something; it must be silent without a terminal");
    const int64_t left = end - clock.MonotonicUs();
    pollfd fds[] = {{from_.Get(), POLLIN, 0}, {words_.Get(), POLLIN, 0}};
    if (left <= 0 || poll(fds, 2, static_cast<int>(left / 1000) + 1) == 0)
      return Fail(ErrorCode::kUnavailable, StrCat(Quoted(target_.location, 300), " does not answer"));
    if (!TakeBytes(&bytes)) return Fail(SshError(target_, said_));
  }
  std::optional<SftpVersion> version = ParseSftpVersion(frame.body);
  if (!version || version->version < 3)
    return Fail(ErrorCode::kUnavailable,
                StrCat(Quoted(target_.location, 300), " does not speak SFTP version 3"));
  version_ = std::move(*version);
  return {};
}

// Larger pieces cost less.
void SftpLink::AskLimits() {
  if (!Offers("limits@openssh.com")) return;
  const Result<SftpReply> reply = Call(SftpType::kExtended, SftpBody().Text("limits@openssh.com"));
  if (!reply || reply->type != SftpType::kExtendedReply) return;
  const auto limits = ParseSftpLimits(reply->body);
  if (!limits) return;
  const auto within = [](uint64_t told, uint32_t now) {
    return told == 0 ? now : static_cast<uint32_t>(std::clamp<uint64_t>(told, 4096, 255 * 1024));
  };
  read_size_ = within(limits->read, read_size_);
  write_size_ = within(limits->write, write_size_);
}

// What has come of both streams; false at the end of the answers.
bool SftpLink::TakeBytes(std::string* bytes) {
  char buffer[2048];
  const ssize_t said = read(words_.Get(), buffer, sizeof buffer);
  if (said > 0) {
    const std::lock_guard lock(mutex_);
    said_.append(buffer, static_cast<size_t>(said));
    if (said_.size() > kMostSaid) said_.erase(0, said_.size() - kMostSaid);
  }
  const size_t before = bytes->size();
  constexpr size_t kAtOnce = 256 * 1024;
  bytes->resize(before + kAtOnce);
  const ssize_t got = read(from_.Get(), bytes->data() + before, kAtOnce);
  bytes->resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void SftpLink::Listen() {
  std::string bytes;
  while (!dead_) {
    pollfd fds[] = {{from_.Get(), POLLIN, 0}, {words_.Get(), POLLIN, 0}};
    if (poll(fds, 2, 500) < 0 && errno != EINTR) break;
    if ((fds[0].revents | fds[1].revents) == 0) continue;
    const bool more = TakeBytes(&bytes);
    size_t taken = 0;
    SftpFrame frame;
    SftpFraming framing;
    while ((framing = TakeSftpFrame(std::string_view(bytes).substr(taken), &frame)) == SftpFraming::kWhole) {
      Deliver(frame);
      taken += frame.size;
    }
    bytes.erase(0, taken);
    if (framing == SftpFraming::kBroken) return Die("it sent something that is no SFTP");
    if (!more) return Die(LastLine(said_).empty() ? "the connection was closed" : LastLine(said_));
  }
}

void SftpLink::Deliver(const SftpFrame& frame) {
  const uint32_t id = SftpNumber(frame.body);
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  const std::shared_ptr<Slot> slot = found->second;
  if (slot->forgotten) {
    slots_.erase(found);
    return;
  }
  slot->reply = {frame.type, std::string(frame.body.substr(4))};
  slot->done = true;
  slot->answered.notify_all();
}

void SftpLink::Die(std::string why) {
  const std::lock_guard lock(mutex_);
  if (!dead_.exchange(true)) why_dead_ = std::move(why);
  for (const auto& [id, slot] : slots_) slot->answered.notify_all();
}

tl::unexpected<Error> SftpLink::Lost() {
  const std::lock_guard lock(mutex_);
  return Fail(ErrorCode::kUnavailable,
              StrCat("the connection to ", Quoted(target_.location, 300), " was lost: ", ToUtf8(why_dead_)),
              "try again; what was copied stays");
}

Result<void> SftpLink::Write(std::string_view head, std::string_view body, std::string_view data) {
  iovec parts[3] = {{const_cast<char*>(head.data()), head.size()},
                    {const_cast<char*>(body.data()), body.size()},
                    {const_cast<char*>(data.data()), data.size()}};
  size_t left = head.size() + body.size() + data.size();
  const PosixClock clock;
  int64_t end = clock.MonotonicUs() + target_.answer_us;
  const std::lock_guard lock(write_mutex_);
  while (left > 0 && !dead_) {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 3;
    const ssize_t n = sendmsg(to_.Get(), &message, MSG_NOSIGNAL);
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      // Its last words say why, and come after this.
      pollfd words{words_.Get(), POLLIN, 0};
      if (!listener_.joinable()) {
        poll(&words, 1, 1000);
        std::string none;
        (void)TakeBytes(&none);
        return Fail(SshError(target_, said_));
      }
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      Die(strerror(errno));
      break;
    }
    if (n < 0) {
      pollfd ready{to_.Get(), POLLOUT, 0};
      poll(&ready, 1, 1000);
      if (clock.MonotonicUs() > end) Die("it takes nothing any more");
      continue;
    }
    end = clock.MonotonicUs() + target_.answer_us;
    left -= static_cast<size_t>(n);
    auto gone = static_cast<size_t>(n);
    for (iovec& part : parts) {
      const size_t of_this = std::min(gone, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + of_this;
      part.iov_len -= of_this;
      gone -= of_this;
    }
  }
  if (left > 0) return Lost();
  return {};
}

Result<uint32_t> SftpLink::Ask(SftpType type, std::string_view body, std::string_view data) {
  uint32_t id;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    slots_[id] = std::make_shared<Slot>();
  }
  if (dead_) return Lost();
  const Result<void> written = Write(SftpHead(type, id, body.size() + data.size()), body, data);
  if (!written) return Fail(written.error());
  return id;
}

Result<SftpReply> SftpLink::Wait(uint32_t id) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Slot> slot = slots_[id];
  if (slot == nullptr) return Fail(ErrorCode::kInternal, "nobody asked for that answer");
  const bool in_time = slot->answered.wait_for(lock, std::chrono::microseconds(target_.answer_us),
                                               [&] { return slot->done || dead_.load(); });
  slots_.erase(id);
  if (slot->done) return std::move(slot->reply);
  lock.unlock();
  if (!in_time) Die("it does not answer");
  return Lost();
}

void SftpLink::Forget(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  if (found->second->done || dead_)
    slots_.erase(found);
  else
    found->second->forgotten = true;
}

Result<SftpReply> SftpLink::Call(SftpType type, const SftpBody& body) {
  OC_TRY(id, Ask(type, body.bytes()));
  return Wait(id);
}

}  // namespace overcap
