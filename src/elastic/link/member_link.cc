// SPDX-License-Identifier: Apache-2.0
#include "elastic/link/member_link.h"

#include <algorithm>

#include "base/text.h"
#include "net/tcp.h"

namespace overcap::elastic {
namespace {

constexpr int64_t kStaggerUs = 50'000;  // the next address is tried beside, not instead

}  // namespace

void MemberLink::Begin(const LeaderContact& leader, int64_t within_us) {
  Close();
  leader_ = leader;
  const int64_t now_us = clock_.MonotonicUs();
  until_us_ = now_us + within_us;
  state_ = State::kConnecting;
  problem_.clear();
  denied_ = false;
  int64_t at_us = now_us;
  for (const std::string& address : leader.addresses) {
    tries_.push_back({Fd(), std::nullopt, at_us, address});
    at_us += kStaggerUs;
  }
  if (tries_.empty()) Break("the leader has no address");
}

void MemberLink::Close() {
  tries_.clear();
  fd_.Reset();
  in_ = FrameReader(kMaxElasticFrame);
  out_ = FrameWriter();
  opened_ = false;
  state_ = State::kIdle;
}

void MemberLink::Break(std::string why) {
  Close();
  problem_ = std::move(why);
  state_ = State::kFailed;
}

int64_t MemberLink::Prepare(std::vector<pollfd>* fds) const {
  if (state_ == State::kOpen) {
    const short writes = out_.Pending() > 0 ? POLLOUT : 0;
    fds->push_back({fd_.Get(), static_cast<short>(POLLIN | writes), 0});
    return kNever;
  }
  if (state_ != State::kConnecting) return kNever;
  int64_t next = until_us_;
  for (const Try& one : tries_) {
    if (!one.fd) {
      next = std::min(next, one.at_us);
    } else {
      fds->push_back({one.fd.Get(), static_cast<short>(one.handshake ? POLLIN : POLLOUT), 0});
    }
  }
  return next;
}

void MemberLink::Advance(Try* one) {
  const int64_t now_us = clock_.MonotonicUs();
  const auto give_up = [&](const std::string& why) {
    problem_ = StrCat(one->address, " port ", leader_.port, ": ", why);
    one->at_us = kNever;
    one->fd.Reset();
  };
  if (!one->fd) {
    if (now_us < one->at_us) return;
    auto fd = BeginConnect(one->address, leader_.port);
    if (!fd) return give_up(fd.error().message);
    one->fd = std::move(*fd);
  }
  if (!one->handshake) {
    pollfd ready{one->fd.Get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) return;
    const auto outcome = ConnectOutcome(one->fd);
    if (!outcome) return give_up(outcome.error().message);
    one->handshake.emplace(Handshake::Role::kNode, leader_.key, random_);
  }
  const auto known = one->handshake->Step(one->fd);
  if (!known) {
    denied_ = denied_ || known.error().code == ErrorCode::kDenied;
    return give_up(known.error().message);
  }
  if (!*known) return;
  Fd fd = std::move(one->fd);
  tries_.clear();
  fd_ = std::move(fd);
  address_ = LocalAddressOf(fd_);
  state_ = State::kOpen;
  opened_ = true;
}

std::vector<ToMember> MemberLink::Act() {
  std::vector<ToMember> got;
  if (state_ == State::kConnecting) {
    for (size_t i = 0; i < tries_.size(); ++i) {
      if (tries_[i].at_us != kNever) Advance(&tries_[i]);
      if (state_ == State::kOpen) break;
    }
  }
  if (state_ == State::kConnecting) {
    const bool over =
        std::all_of(tries_.begin(), tries_.end(), [](const Try& t) { return t.at_us == kNever; });
    if (over) {
      Break(std::string(problem_));
    } else if (clock_.MonotonicUs() >= until_us_) {
      Break(problem_.empty() ? StrCat(leader_.addresses[0], " port ", leader_.port, ": no answer in time")
                             : std::string(problem_));
    }
  }
  if (state_ == State::kOpen) Read(&got);
  return got;
}

bool MemberLink::TakeOpened() {
  return std::exchange(opened_, false);
}

void MemberLink::Read(std::vector<ToMember>* got) {
  const auto open = in_.FeedFrom(fd_);
  for (;;) {
    const auto frame = in_.Next();
    if (!frame) return Break(frame.error().message);
    if (!*frame) break;
    auto message = DecodeToMember(**frame);
    if (!message) return Break(message.error().message);
    got->push_back(std::move(*message));
  }
  if (!open || !*open) return Break("the leader closed the connection");
  if (out_.Pending() > 0 && !out_.Flush(fd_)) Break("the leader closed the connection");
}

void MemberLink::Send(const ToLeader& message) {
  if (state_ != State::kOpen || !out_.Add(Encode(message))) return;
  if (!out_.Flush(fd_)) Break("the leader closed the connection");
}

}  // namespace overcap::elastic
