// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/peer_server.h"

#include <array>
#include <cerrno>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "control/fanout/fanout_messages.h"
#include "control/fanout/stream_io.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr uint32_t kSmall = 64 << 10;  // below this a copy through memory is cheaper
constexpr size_t kGathered = 256 << 10;
constexpr int kHandshakeMs = 10'000;
constexpr int kIdleMs = 600'000;  // a peer may be busy with what it has
constexpr uint32_t kListMost = 8 << 20;

Result<void> Greet(const Fd& connection, const LinkKey& key, int stop_fd) {
  KernelRandom random;
  Handshake handshake(Handshake::Role::kHead, key, random);
  for (;;) {
    OC_TRY(done, handshake.Step(connection));
    if (done) return {};
    OC_TRY_VOID(WaitForStream(connection.Get(), POLLIN, {kHandshakeMs, stop_fd}));
  }
}

Result<std::vector<fanout::WantedChunk>> NextRequest(const Fd& connection, int stop_fd) {
  std::array<char, 4> header;
  OC_TRY_VOID(ReceiveBytes(connection.Get(), header.data(), header.size(), {kIdleMs, stop_fd}));
  uint32_t length = 0;
  for (size_t i = 0; i < header.size(); ++i)
    length |= uint32_t{static_cast<unsigned char>(header[i])} << (8 * i);
  if (length > kListMost) return Fail(ErrorCode::kCorrupt, "a request for chunks is too long");
  std::string list(length, '\0');
  OC_TRY_VOID(ReceiveBytes(connection.Get(), list.data(), list.size(), {.stop_fd = stop_fd}));
  return fanout::DecodeChunkList(list);
}

// Small chunks are gathered, large ones go from the file to the socket.
class Answer {
 public:
  Answer(int fd, int stop_fd) : fd_(fd), patience_{.stop_fd = stop_fd} {}

  Result<void> Add(const FolderChunks& chunks, const fanout::WantedChunk& chunk) {
    if (chunk.size < kSmall) {
      const size_t before = gathered_.size();
      gathered_.resize(before + chunk.size);
      if (!chunks.Read(chunk, gathered_.data() + before)) return Vanished();
      return gathered_.size() >= kGathered ? Flush(true) : Result<void>();
    }
    int64_t offset = 0;
    const Fd file = chunks.Open(chunk, &offset);
    if (!file) return Vanished();
    OC_TRY_VOID(Flush(true));
    return SendFileRange(fd_, file.Get(), offset, chunk.size, patience_);
  }
  void AddMark(bool there) { gathered_.push_back(there ? '\1' : '\0'); }
  Result<void> Flush(bool more_follows) {
    OC_TRY_VOID(SendBytes(fd_, gathered_, more_follows, patience_));
    gathered_.clear();
    return {};
  }

 private:
  static tl::unexpected<Error> Vanished() {
    return Fail(ErrorCode::kConflict, "a file became shorter while it was sent");
  }

  const int fd_;
  const StreamPatience patience_;
  std::string gathered_;
};

Result<void> Give(const Fd& connection, const FolderChunks& chunks,
                  const std::vector<fanout::WantedChunk>& wanted, int stop_fd) {
  Answer answer(connection.Get(), stop_fd);
  std::vector<bool> there;
  for (const fanout::WantedChunk& chunk : wanted) {
    int64_t offset = 0;
    there.push_back(chunks.Open(chunk, &offset).Valid());
    answer.AddMark(there.back());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (there[i]) OC_TRY_VOID(answer.Add(chunks, wanted[i]));
  }
  return answer.Flush(false);
}

}  // namespace

Result<std::unique_ptr<PeerServer>> PeerServer::Start(const FolderChunks& chunks, LinkKey key) {
  OC_TRY(listener, ListenTcp());
  Fd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return Fail(ErrnoError(errno, "cannot make an eventfd"));
  std::unique_ptr<PeerServer> server(
      new PeerServer(chunks, std::move(key), std::move(listener), std::move(stop)));
  server->accepting_ = std::thread([raw = server.get()] { raw->Accept(); });
  return server;
}

PeerServer::~PeerServer() {
  const uint64_t one = 1;
  (void)!write(stop_.Get(), &one, sizeof one);
  if (accepting_.joinable()) accepting_.join();
  for (Served& each : served_) each.thread.join();
}

void PeerServer::Accept() {
  for (;;) {
    pollfd fds[2] = {{listener_.fd.Get(), POLLIN, 0}, {stop_.Get(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    Result<std::optional<Fd>> connection = AcceptTcp(listener_.fd);
    if (!connection) (void)poll(&fds[1], 1, 100);  // out of descriptors: others will be closed
    if (connection && *connection) Begin(std::move(**connection));
  }
}

void PeerServer::Begin(Fd connection) {
  served_.remove_if([](Served& each) {
    if (!each.over) return false;
    each.thread.join();
    return true;
  });
  if (served_.size() >= kConnectionsMost) return;
  Served& made = served_.emplace_back();
  try {
    made.thread = std::thread([this, &made, fd = std::move(connection)]() mutable {
      Serve(std::move(fd));
      made.over = true;
    });
  } catch (const std::system_error&) {  // there can be no more threads: who has connected asks elsewhere
    served_.pop_back();
  }
}

void PeerServer::Serve(Fd connection) {
  if (!Greet(connection, key_, stop_.Get())) return;
  for (;;) {
    const auto wanted = NextRequest(connection, stop_.Get());
    if (!wanted || !Give(connection, chunks_, *wanted, stop_.Get())) return;
  }
}

}  // namespace overcap
