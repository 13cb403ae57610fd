// SPDX-License-Identifier: Apache-2.0
// A node that is complete hands its chunks to others.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "control/fanout/folder_chunks.h"
#include "net/handshake.h"
#include "net/tcp.h"
#include "sys/fd.h"

namespace overcap {

// From its start to its end it answers whoever knows the key, each connection on a thread of its own.
class PeerServer {
 public:
  // `chunks` outlives it.
  static Result<std::unique_ptr<PeerServer>> Start(const FolderChunks& chunks, LinkKey key);
  ~PeerServer();  // ends all connections

  int port() const { return listener_.port; }

 private:
  static constexpr size_t kConnectionsMost = 64;

  PeerServer(const FolderChunks& chunks, LinkKey key, TcpListener listener, Fd stop)
      : chunks_(chunks), key_(std::move(key)), listener_(std::move(listener)), stop_(std::move(stop)) {}
  struct Served {
    std::atomic<bool> over = false;
    std::thread thread;
  };

  void Accept();
  void Begin(Fd connection);
  void Serve(Fd connection);

  const FolderChunks& chunks_;
  const LinkKey key_;
  TcpListener listener_;
  Fd stop_;                   // an eventfd that becomes readable once
  std::list<Served> served_;  // of the accepting thread, until that has ended; those that are over go
  std::thread accepting_;
};

}  // namespace overcap
