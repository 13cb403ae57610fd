// SPDX-License-Identifier: Apache-2.0
#include "launch/ssh/master_address.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <sys/socket.h>
#include <thread>

namespace overcap {

struct NameLookup::State {
  std::mutex mutex;
  std::condition_variable known;
  std::optional<bool> resolves;
};

NameLookup::NameLookup(const std::string& name) : state_(std::make_shared<State>()) {
  std::thread([state = state_, name] {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const bool resolves = getaddrinfo(name.c_str(), nullptr, &hints, &found) == 0;
    if (found != nullptr) freeaddrinfo(found);
    const std::lock_guard lock(state->mutex);
    state->resolves = resolves;
    state->known.notify_all();
  }).detach();
}

bool NameLookup::Resolves(int64_t wait_us) {
  std::unique_lock lock(state_->mutex);
  state_->known.wait_for(lock, std::chrono::microseconds(wait_us),
                         [this] { return state_->resolves.has_value(); });
  return state_->resolves.value_or(false);
}

std::string MasterAddress(int hosts, const std::string& host, bool resolves, const std::string& told,
                          const std::string& own_name) {
  if (hosts == 1) return "127.0.0.1";
  if (host == "localhost" || host.starts_with("127.") || host == "::1") return own_name;
  return resolves || told.empty() ? host : told;
}

}  // namespace overcap
