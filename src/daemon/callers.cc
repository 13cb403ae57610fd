// SPDX-License-Identifier: Apache-2.0
#include "daemon/callers.h"

#include <unistd.h>

#include "base/text.h"
#include "model/request_limits.h"
#include "net/unix_socket.h"
#include "sys/limits.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr int64_t kNameHoldsUs = 60'000'000;
constexpr size_t kMostNames = 100'000;
constexpr size_t kPlacesOfRoot = 16;

}  // namespace

Result<void> OneCaller::Admits(uid_t uid) {
  if (uid == getuid()) return {};
  return Fail(ErrorCode::kDenied, "this engine serves another user");
}

Result<Asker> OneCaller::Identify(const Fd& connection) {
  OC_TRY(uid, PeerUid(connection));
  OC_TRY_VOID(Admits(uid));
  return Asker{};
}

CallerBounds ManyCallers::Bounds() const {
  return {.connections = kMaxConnections,
          .connections_when_full = kMaxConnectionsWhenFull,
          .places_of_root = kPlacesOfRoot,
          .request_bytes = kMaxRequestBytes,
          .held_bytes = kMaxHeldRequestBytes,
          .unread_bytes = kMaxUnreadBytes,
          .requests_per_turn = 16,
          .turn_us = kMaxTurnUs,
          .stall_us = int64_t{1'000'000} * stall_seconds_};
}

// A name that was found stays known while the user database does not answer.
const std::string& ManyCallers::NameOf(uid_t uid) {
  const int64_t now = clock_.MonotonicUs();
  if (names_.size() > kMostNames) names_.clear();
  Name& name = names_[uid];
  if (!name.asked || now - name.at_us > kNameHoldsUs) {
    const auto entry = FindUser(uid);
    if (entry && !entry->name.empty()) name.text = entry->name;
    name.at_us = now;
    name.asked = true;
  }
  return name.text;
}

Result<void> ManyCallers::Admits(uid_t uid) {
  if (uid == 0 || !NameOf(uid).empty()) return {};
  return Fail(ErrorCode::kDenied, StrCat("user id ", uid, " is not in the user list of this machine"),
              "the engine serves the users that `getent passwd` lists, and none of their subordinate ids");
}

Result<Asker> ManyCallers::Identify(const Fd& connection) {
  OC_TRY(peer, PeerOf(connection));
  Asker asker;
  asker.only_user = false;
  asker.user = NameOf(peer.uid);
  if (asker.user.empty()) asker.user = std::to_string(peer.uid);
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
