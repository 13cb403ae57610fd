// SPDX-License-Identifier: Apache-2.0
#include "daemon/callers.h"

#include <unistd.h>

#include "base/text.h"
#include "net/unix_socket.h"
#include "sys/limits.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr int64_t kNameHoldsUs = 60'000'000;
constexpr size_t kMostNames = 100'000;

}  // namespace

Result<Asker> OneCaller::Identify(const Fd& connection) {
  OC_TRY(uid, PeerUid(connection));
  if (uid == getuid()) return Asker{};
  return Fail(ErrorCode::kDenied, "this engine serves another user");
}

CallerBounds ManyCallers::Bounds() const {
  return {.connections = 32,
          .request_bytes = 4 << 20,
          .unread_bytes = 64 << 20,
          .requests_per_turn = 16,
          .stall_us = int64_t{1'000'000} * stall_seconds_};
}

const std::string& ManyCallers::NameOf(uid_t uid) {
  const int64_t now = clock_.MonotonicUs();
  if (names_.size() > kMostNames) names_.clear();
  Name& name = names_[uid];
  if (name.text.empty() || now - name.at_us > kNameHoldsUs) {
    const auto entry = FindUser(uid);
    name = {entry && !entry->name.empty() ? entry->name : std::to_string(uid), now};
  }
  return name.text;
}

Result<Asker> ManyCallers::Identify(const Fd& connection) {
  OC_TRY(peer, PeerOf(connection));
  Asker asker;
  asker.only_user = false;
  asker.user = NameOf(peer.uid);
  asker.owner.uid = peer.uid;
  asker.owner.gid = peer.gid;
  asker.owner.groups.assign(peer.groups.begin(), peer.groups.end());
  // A client that is gone again, or runs a program with other rights, says nothing about its user.
  const auto limits = LimitsOfProcess(peer.pid, peer.uid);
  for (const NamedLimit& limit : limits ? *limits : std::vector<NamedLimit>())
    asker.owner.limits.push_back({limit.name, limit.soft, limit.hard});
  OC_TRY(area, areas_.MakeArea(peer.uid, peer.gid));
  asker.area = std::move(area);
  return asker;
}

}  // namespace overcap
