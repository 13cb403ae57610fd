// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/head_search.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/text.h"
#include "net/resolve.h"
#include "net/tcp.h"

namespace overcap {
namespace {

constexpr int64_t kResolveAfterUs = 500'000;
constexpr size_t kMaxTries = 64;

}  // namespace

struct HeadSearch::Try {
  std::string address;
  Fd fd;
  bool connected = false;
  Handshake handshake;
};

HeadSearch::HeadSearch(const LaunchContact& contact, LinkKey key, Random& random, int64_t now_us,
                       int64_t limit_us)
    : head_host_(contact.head_host),
      port_(contact.port),
      key_(std::move(key)),
      random_(random),
      resolve_at_us_(now_us + kResolveAfterUs),
      deadline_us_(now_us + limit_us) {
  for (const std::string& address : contact.addresses) Begin(address);
  Step(now_us);
}

HeadSearch::~HeadSearch() = default;

void HeadSearch::Begin(const std::string& address) {
  if (tries_.size() >= kMaxTries || std::find(known_.begin(), known_.end(), address) != known_.end()) return;
  known_.push_back(address);
  auto fd = BeginConnect(address, port_);
  if (!fd) {
    why_ = fd.error().message;
    return;
  }
  tries_.push_back(std::make_unique<Try>(
      Try{address, std::move(*fd), false, Handshake(Handshake::Role::kNode, key_, random_)}));
}

void HeadSearch::AddFds(std::vector<pollfd>* fds) const {
  for (const auto& each : tries_) {
    fds->push_back({each->fd.Get(), static_cast<short>(each->connected ? POLLIN : POLLOUT), 0});
  }
  if (resolved_) fds->push_back({resolved_.Get(), POLLIN, 0});
}

bool HeadSearch::Advance(Try* each) {
  if (!each->connected) {
    pollfd entry{each->fd.Get(), POLLOUT, 0};
    if (poll(&entry, 1, 0) != 1) return true;
    if (const auto outcome = ConnectOutcome(each->fd); !outcome) {
      why_ = StrCat(each->address, ": ", outcome.error().message);
      return false;
    }
    each->connected = true;
  }
  const auto done = each->handshake.Step(each->fd);
  if (!done) why_ = StrCat(each->address, ": ", done.error().message);
  if (done && *done) found_ = std::move(each->fd);
  return static_cast<bool>(done);
}

void HeadSearch::ResolveBeside() {
  resolving_ = true;
  auto pipe = head_host_.empty() ? Result<Fd>(Fd()) : overcap::ResolveBeside(head_host_);
  if (pipe) resolved_ = std::move(*pipe);
  resolve_done_ = !resolved_;
}

void HeadSearch::TakeResolved() {
  char chunk[4096];
  const ssize_t n = read(resolved_.Get(), chunk, sizeof chunk);
  if (n > 0) resolved_text_.append(chunk, static_cast<size_t>(n));
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
  resolved_.Reset();
  resolve_done_ = true;
  for (const std::string& address : Split(resolved_text_, '\n')) {
    if (!address.empty()) Begin(address);
  }
}

void HeadSearch::Step(int64_t now_us) {
  if (Found() || failed_) return;
  const bool hopeless = tries_.empty() && !resolving_;
  if ((now_us >= resolve_at_us_ || hopeless) && !resolving_) ResolveBeside();
  if (resolved_) TakeResolved();
  std::erase_if(tries_, [this](const auto& each) { return !Found() && !Advance(each.get()); });
  if (Found()) {
    tries_.clear();
  } else if (now_us >= deadline_us_ || (tries_.empty() && resolve_done_)) {
    failed_ = true;
    if (!tries_.empty()) why_ = StrCat(tries_.front()->address, " does not answer");
    tries_.clear();
  }
}

int64_t HeadSearch::NextUs() const {
  return tries_.empty() && !resolving_ ? 0
         : resolving_                  ? deadline_us_
                                       : std::min(resolve_at_us_, deadline_us_);
}

}  // namespace overcap
