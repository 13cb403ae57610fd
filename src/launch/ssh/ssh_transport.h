// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/link/head.h"
#include "launch/ssh/binary_copy.h"
#include "launch/ssh/master_address.h"

namespace overcap {

constexpr const char* kQuickKeyExchange = "KexAlgorithms=^curve25519-sha256";

// True for a host that this process runs on.
bool IsThisHost(const std::string& host);

// Links through ssh: one process for each host.
class SshTransport : public node_link::Transport {
 public:
  explicit SshTransport(const Attempt& attempt);

  Result<void> Begin(node_link::Head* head) override;
  int64_t Prepare(std::vector<pollfd>* fds) override;
  void Act(std::span<const pollfd> fds, node_link::Head* head) override;
  bool Accept(int host, const node_link::Hello& hello, node_link::Head* head) override;
  bool OnChildEnd(const node_link::Child& child, const ProcessEnd& end, node_link::Head* head) override;
  Result<std::vector<std::string>> FirstFrames(const std::vector<node_link::Hello>& hellos) override;

 private:
  // How far the way to one host has come.
  struct Way {
    bool local = false;
    bool plain_kex = false;  // its ssh does not know our key exchange option
    bool copied = false;     // it uses the copy
    pid_t node = -1;         // the ssh whose other end is to be the node
    pid_t copy = -1;         // the ssh that copies
    Fd copy_input;
    size_t copy_sent = 0;
  };

  int64_t ConnectUs(int host) const;  // how long it may take to answer
  void StartNode(int host, node_link::Head* head);
  void StartCopy(int host, const std::string& why, node_link::Head* head);
  void FeedCopy(Way* way);
  std::vector<std::string> SshWords(int host, const std::string& remote_command) const;
  bool CopyEnded(int host, const node_link::Child& child, const ProcessEnd& end, node_link::Head* head);
  Result<pid_t> Spawn(int host, std::vector<std::string> argv, int stdin_fd, int stdout_fd,
                      node_link::Head* head);
  const std::string& NameOf(int host) const { return attempt_.plan.hosts[host].name; }

  const Attempt& attempt_;
  std::vector<Way> ways_;
  std::optional<BinaryCopy> binary_;
  std::unique_ptr<NameLookup> master_name_;
};

}  // namespace overcap
