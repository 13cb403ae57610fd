// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/node_chunks.h"

#include "base/text.h"

namespace overcap {
namespace {

// Takes away what has come and is right, by the id, which nobody can forge; false when something came that is
// wrong. Nobody looks at the bytes after that.
template <typename M>
bool KeepMissing(M* missing, const std::vector<bool>& there) {
  bool right = true;
  M left;
  for (size_t i = 0; i < missing->chunks.size(); ++i) {
    const bool came = there[i];
    const std::string_view bytes(missing->out[i], missing->chunks[i].size);
    const bool good = came && Sha256Of(bytes) == missing->chunks[i].id;
    right = right && (good || !came);
    if (good) continue;
    left.chunks.push_back(missing->chunks[i]);
    left.out.push_back(missing->out[i]);
  }
  *missing = std::move(left);
  return right;
}

}  // namespace

NodeChunks::Missing NodeChunks::WithoutOwn(const std::vector<fanout::WantedChunk>& chunks, char* out) {
  Missing missing;
  for (const fanout::WantedChunk& wanted : chunks) {
    const bool own = old_ != nullptr && old_->Read(wanted, out) && Sha256Of({out, wanted.size}) == wanted.id;
    if (own) {
      reused_ += wanted.size;
    } else {
      missing.chunks.push_back(wanted);
      missing.out.push_back(out);
    }
    out += wanted.size;
  }
  return missing;
}

Result<std::shared_ptr<NodeChunks::Peer>> NodeChunks::CurrentPeer() {
  const std::lock_guard asking(asking_);
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (peer_) return peer_;
    why = why_;
  }
  OC_TRY(use, uplink_.Ask(why));
  auto peer = std::make_shared<Peer>();
  peer->use = std::move(use);
  const std::lock_guard lock(mutex_);
  peer_ = peer;
  return peer;
}

void NodeChunks::Blame(const std::shared_ptr<Peer>& peer, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (peer_ != peer) return;  // another thread was faster
  peer_ = nullptr;
  why_ = error.message;
}

Result<PeerConnection> NodeChunks::Connect(const std::shared_ptr<Peer>& peer) {
  {
    const std::lock_guard lock(mutex_);
    if (!peer->idle.empty()) {
      PeerConnection connection = std::move(peer->idle.back());
      peer->idle.pop_back();
      return connection;
    }
  }
  return PeerConnection::Open(peer->use, key_, uplink_.stop_fd());
}

Result<void> NodeChunks::FromPeer(const std::shared_ptr<Peer>& peer, Missing* missing) {
  OC_TRY(connection, Connect(peer));
  std::vector<bool> there;
  OC_TRY_VOID(connection.Get(missing->chunks, missing->out, &there));
  (peer->use.head ? from_head_ : from_peers_) += connection.received();
  if (!KeepMissing(missing, there)) return Fail(ErrorCode::kCorrupt, "it sent something else");
  const std::lock_guard lock(mutex_);
  peer->idle.push_back(std::move(connection));
  return {};
}

Result<void> NodeChunks::FromHead(Missing* missing) {
  std::vector<bool> there;
  OC_TRY_VOID(uplink_.Get(missing->chunks, missing->out, &there));
  (void)KeepMissing(missing, there);
  if (missing->chunks.empty()) return {};
  return Fail(ErrorCode::kConflict, "the source changed while it was sent", "run it again");
}

void NodeChunks::Close() {
  const std::lock_guard lock(mutex_);
  peer_ = nullptr;
}

Result<void> NodeChunks::Fetch(const std::vector<fanout::WantedChunk>& chunks, char* out) {
  Missing missing = WithoutOwn(chunks, out);
  while (!missing.chunks.empty()) {
    OC_TRY(peer, CurrentPeer());
    if (peer->use.peer.empty()) return FromHead(&missing);
    Result<void> got = FromPeer(peer, &missing);
    if (got) break;
    if (*uplink_.gone()) return got;
    Blame(peer, got.error());
  }
  // What a good peer does not have, because somebody has changed its files.
  return missing.chunks.empty() ? Result<void>() : FromHead(&missing);
}

}  // namespace overcap
