// SPDX-License-Identifier: Apache-2.0
// Where a node gets chunks: what it has already, then the peer that the head named, then the head itself.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/fanout/folder_chunks.h"
#include "control/fanout/node_uplink.h"
#include "control/fanout/peer_connection.h"
#include "control/fanout/virtual_packs.h"

namespace overcap {

class NodeChunks : public ChunkSource {
 public:
  // `old` may be null; all outlive it.
  NodeChunks(NodeUplink* uplink, LinkKey key, const FolderChunks* old)
      : uplink_(*uplink), key_(std::move(key)), old_(old) {}

  Result<void> Fetch(const std::vector<fanout::WantedChunk>& chunks, char* out) override;

  // There is nothing more to fetch: others need the places that connections take.
  void Close();

  int64_t from_peers() const { return from_peers_; }
  int64_t from_head() const { return from_head_; }  // by a connection of its own
  int64_t reused() const { return reused_; }

 private:
  // What is still missing of one Fetch.
  struct Missing {
    std::vector<fanout::WantedChunk> chunks;
    std::vector<char*> out;
  };
  struct Peer {
    fanout::Use use;
    std::vector<PeerConnection> idle;
  };

  Missing WithoutOwn(const std::vector<fanout::WantedChunk>& chunks, char* out);
  Result<std::shared_ptr<Peer>> CurrentPeer();
  Result<PeerConnection> Connect(const std::shared_ptr<Peer>& peer);
  Result<void> FromPeer(const std::shared_ptr<Peer>& peer, Missing* missing);
  void Blame(const std::shared_ptr<Peer>& peer, const Error& error);
  Result<void> FromHead(Missing* missing);

  NodeUplink& uplink_;
  const LinkKey key_;
  const FolderChunks* const old_;
  std::atomic<int64_t> from_peers_ = 0, from_head_ = 0, reused_ = 0;
  std::mutex asking_;  // held while the head is asked: the others wait for the same answer
  std::mutex mutex_;   // guards what follows
  std::shared_ptr<Peer> peer_;
  std::string why_;  // what was wrong with the last one
};

}  // namespace overcap
