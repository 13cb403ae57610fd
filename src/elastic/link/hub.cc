// SPDX-License-Identifier: Apache-2.0
#include "elastic/link/hub.h"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>

#include "elastic/leader_state.h"
#include "elastic/times.h"
#include "net/tcp.h"

namespace overcap::elastic {
namespace {

constexpr int64_t kHandshakeUs = 5'000'000;
constexpr int kAcceptsAtOnce = 256;
constexpr int kEventsAtOnce = 256;
constexpr size_t kMostUnsent = 8 << 20;
// Of so many members the next beat is microseconds away: a moment's rest takes many at once. Not while a
// group forms.
constexpr size_t kMany = 500;
constexpr int64_t kRestOfEachUs = 5;
constexpr int64_t kLongestRestUs = 10'000;

}  // namespace

Result<std::unique_ptr<Hub>> Hub::Make(const Fd& listener, LinkKey key, const Clock& clock, Random* random) {
  std::unique_ptr<Hub> hub(new Hub(listener, std::move(key), clock, random));
  hub->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = 0;  // no member has that number
  if (!hub->epoll_ || epoll_ctl(hub->epoll_.Get(), EPOLL_CTL_ADD, listener.Get(), &event) != 0) {
    return Fail(ErrnoError(errno, "cannot wait for members"));
  }
  return hub;
}

void Hub::AcceptAll() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    auto accepted = AcceptTcp(listener_);
    if (!accepted || !*accepted) return;
    const int number = next_number_++;
    auto peer = std::make_unique<Peer>();
    peer->fd = std::move(**accepted);
    peer->handshake.emplace(Handshake::Role::kHead, key_, random_);
    peer->until_us = clock_.MonotonicUs() + kHandshakeUs;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(number);
    if (epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, peer->fd.Get(), &event) != 0) continue;
    (void)peer->handshake->Step(peer->fd);  // our part of it; what fails now fails again when it is read
    peers_.emplace(number, std::move(peer));
    strangers_.push_back(number);
  }
}

void Hub::Act(LeaderState* state) {
  if (Rests()) return;
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.Get(), events, kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const int number = static_cast<int>(events[i].data.u32);
    if (number == 0) {
      AcceptAll();
      continue;
    }
    const auto at = peers_.find(number);
    if (at == peers_.end()) continue;
    if ((events[i].events & EPOLLOUT) != 0) unsent_.push_back(number);
    if ((events[i].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) Serve(number, at->second.get(), state);
  }
  const int64_t now_us = clock_.MonotonicUs();
  if (count > 0 && count < kEventsAtOnce / 2 && peers_.size() >= kMany && state->Settled()) {
    rest_until_us_ = now_us + std::min(static_cast<int64_t>(peers_.size()) * kRestOfEachUs, kLongestRestUs);
  }
  std::erase_if(strangers_, [&](int number) {
    const auto at = peers_.find(number);
    if (at == peers_.end() || !at->second->handshake) return true;
    if (now_us < at->second->until_us) return false;
    Close(number, state);
    return true;
  });
}

bool Hub::Rests() const {
  return clock_.MonotonicUs() < rest_until_us_;
}

int64_t Hub::NextUs() const {
  int64_t next = Rests() ? rest_until_us_ : kNever;
  for (const int number : strangers_) {
    const auto at = peers_.find(number);
    if (at != peers_.end()) next = std::min(next, at->second->until_us);
  }
  return next;
}

void Hub::Serve(int number, Peer* peer, LeaderState* state) {
  if (peer->handshake) {
    const auto known = peer->handshake->Step(peer->fd);
    if (!known) return Close(number, state);
    if (!*known) return;
    peer->handshake.reset();
  }
  const auto open = peer->in.FeedFrom(peer->fd);
  for (;;) {
    const auto frame = peer->in.Next();
    if (!frame) return Close(number, state);
    if (!*frame) break;
    if (!Handle(number, peer, **frame, state)) return Close(number, state);
  }
  if (!open || !*open) Close(number, state);
}

bool Hub::Handle(int number, Peer* peer, std::string_view frame, LeaderState* state) {
  auto message = DecodeToLeader(frame);
  if (!message) return false;
  const int64_t now_us = clock_.MonotonicUs();
  if (auto* join = std::get_if<JoinRequest>(&*message)) {
    if (std::exchange(peer->joined, true)) return false;
    state->OnJoin(number, std::move(*join), now_us);
    return true;
  }
  if (!peer->joined) return false;
  if (auto* report = std::get_if<MemberReport>(&*message)) {
    state->OnReport(number, std::move(*report), now_us);
  } else {
    state->OnBeat(number, std::get<MemberBeat>(*message), now_us);
  }
  return true;
}

void Hub::Close(int number, LeaderState* state) {
  const auto at = peers_.find(number);
  if (at == peers_.end()) return;
  const bool joined = at->second->joined;
  peers_.erase(at);
  if (joined) state->OnClosed(number, clock_.MonotonicUs());
}

void Hub::Watch(int number, Peer* peer, bool writes) {
  if (peer->writes == writes) return;
  peer->writes = writes;
  epoll_event event{};
  event.events = EPOLLIN;
  if (writes) event.events |= EPOLLOUT;
  event.data.u32 = static_cast<uint32_t>(number);
  (void)epoll_ctl(epoll_.Get(), EPOLL_CTL_MOD, peer->fd.Get(), &event);
}

void Hub::Flush(int number, Peer* peer, LeaderState* state) {
  const auto all = peer->out.Flush(peer->fd);
  if (!all || peer->out.Pending() > kMostUnsent || (*all && peer->closing)) return Close(number, state);
  Watch(number, peer, !*all);
}

void Hub::Send(LeaderState* state) {
  for (auto& [number, message] : state->TakeMessages()) {
    const auto at = peers_.find(number);
    if (at == peers_.end() || !at->second->out.Add(Encode(message))) continue;
    unsent_.push_back(number);
  }
  for (const int number : state->TakeDrops()) {
    const auto at = peers_.find(number);
    if (at == peers_.end()) continue;
    at->second->closing = true;
    unsent_.push_back(number);
  }
  for (const int number : std::exchange(unsent_, {})) {
    const auto at = peers_.find(number);
    if (at != peers_.end()) Flush(number, at->second.get(), state);
  }
}

size_t Hub::Pending() const {
  return static_cast<size_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const auto& p) { return p.second->out.Pending() > 0; }));
}

}  // namespace overcap::elastic
