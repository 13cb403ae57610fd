// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/node_uplink.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "launch/link/messages.h"
#include "sys/clock.h"

namespace overcap {
namespace {

constexpr int64_t kBeatUs = 3'000'000;
constexpr int kTurnMs = 1'000;

void Raise(const Fd& event) {
  const uint64_t one = 1;
  (void)!write(event.Get(), &one, sizeof one);
}

int64_t NowUs() {
  return PosixClock().MonotonicUs();
}

}  // namespace

Result<std::unique_ptr<NodeUplink>> NodeUplink::Make(node_link::Ends ends) {
  Fd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop || !wake) return Fail(ErrnoError(errno, "cannot make an eventfd"));
  std::unique_ptr<NodeUplink> link(new NodeUplink(std::move(ends), std::move(stop), std::move(wake)));
  link->channel_.SendRaw(node_link::kPreamble);
  link->thread_ = std::thread([raw = link.get()] { raw->Run(); });
  return link;
}

NodeUplink::~NodeUplink() {
  ending_ = true;
  Raise(wake_);
  if (thread_.joinable()) thread_.join();
}

void NodeUplink::SendLocked(const std::string& text) {
  if (gone_) return;
  channel_.Send(text);
  sent_us_ = NowUs();
  Raise(wake_);
}

void NodeUplink::Send(const fanout::ToHead& message) {
  const std::string text = fanout::Encode(message);
  const std::lock_guard lock(mutex_);
  if (const auto* progress = std::get_if<fanout::Progress>(&message)) progress_ = *progress;
  SendLocked(text);
}

tl::unexpected<Error> NodeUplink::HeadGone() const {
  return Fail(ErrorCode::kUnavailable, "the fan-out that this node belongs to is gone");
}

Result<NodeUplink::Work> NodeUplink::WaitForWork() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::minutes(10), [&] { return has_work_ || gone_; }))
    return Fail(ErrorCode::kUnavailable, "the fan-out has not said in time what to do");
  if (!has_work_) return HeadGone();
  return std::move(work_);
}

Result<fanout::Use> NodeUplink::Ask(const std::string& why) {
  std::unique_lock lock(mutex_);
  use_.reset();
  SendLocked(fanout::Encode(fanout::ToHead(fanout::Ask{why})));
  changed_.wait(lock, [&] { return use_ || gone_; });
  if (!use_) return HeadGone();
  return *use_;
}

Result<void> NodeUplink::Get(const std::vector<fanout::WantedChunk>& chunks, const std::vector<char*>& out,
                             std::vector<bool>* there) {
  there->assign(chunks.size(), false);
  Request request{&chunks, &out, there};
  std::unique_lock lock(mutex_);
  const uint64_t number = ++last_request_;
  requests_[number] = &request;
  SendLocked(fanout::Encode(fanout::ToHead(fanout::Get{number, chunks})));
  changed_.wait(lock, [&] { return request.answered || gone_; });
  requests_.erase(number);
  if (!request.answered) return HeadGone();
  if (request.bad)
    return Fail(ErrorCode::kCorrupt, "the head of the fan-out sent other chunks than asked for");
  return {};
}

void NodeUplink::WaitForFinish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finish_ || gone_; });
}

void NodeUplink::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::minutes(1), [&] { return channel_.Pending() == 0 || gone_; });
}

void NodeUplink::Lose() {
  gone_ = true;
  Raise(stop_);
  changed_.notify_all();
}

void NodeUplink::Answer(const fanout::Data& data) {
  const auto found = requests_.find(data.request);
  if (found == requests_.end()) return;
  Request& request = *found->second;
  const size_t count = request.chunks->size();
  request.answered = true;
  request.bad = data.answer.size() < count;
  size_t at = count;
  for (size_t i = 0; i < count && !request.bad; ++i) {
    if (data.answer[i] == '\0') continue;
    const size_t size = (*request.chunks)[i].size;
    request.bad = size > data.answer.size() - at;
    if (request.bad) break;
    std::memcpy((*request.out)[i], data.answer.data() + at, size);
    (*request.there)[i] = true;
    at += size;
  }
}

void NodeUplink::Obey(const std::string& frame) {
  Result<fanout::ToNode> message = fanout::DecodeToNode(frame);
  if (!message) return Lose();
  if (auto* object = std::get_if<fanout::Object>(&*message)) work_.objects.push_back(std::move(*object));
  if (auto* start = std::get_if<fanout::Start>(&*message)) {
    work_.start = std::move(*start);
    has_work_ = true;
  }
  if (auto* use = std::get_if<fanout::Use>(&*message)) use_ = std::move(*use);
  if (const auto* data = std::get_if<fanout::Data>(&*message)) Answer(*data);
  if (std::holds_alternative<fanout::Finish>(*message)) finish_ = true;
}

void NodeUplink::TakeFrames() {
  const bool open = channel_.Read();
  for (;;) {
    const auto frame = channel_.Next();
    if (!frame) return Lose();
    if (!*frame) break;
    received_ += static_cast<int64_t>((*frame)->size()) + 4;
    Obey(**frame);
  }
  if (!open) Lose();
}

void NodeUplink::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_ && !gone_) {
    if (has_work_ && NowUs() - sent_us_ > kBeatUs) SendLocked(fanout::Encode(fanout::ToHead(progress_)));
    if (!channel_.Flush()) return Lose();
    if (channel_.Pending() == 0) changed_.notify_all();
    pollfd fds[3] = {{channel_.ReadFd(), POLLIN, 0},
                     {channel_.Pending() > 0 ? channel_.WriteFd() : -1, POLLOUT, 0},
                     {wake_.Get(), POLLIN, 0}};
    lock.unlock();
    (void)poll(fds, 3, kTurnMs);
    uint64_t count;
    if (fds[2].revents != 0) (void)!read(wake_.Get(), &count, sizeof count);
    lock.lock();
    if (fds[0].revents != 0) {
      TakeFrames();
      changed_.notify_all();
    }
  }
}

}  // namespace overcap
