// SPDX-License-Identifier: Apache-2.0
// A conversation with an SFTP server through the user's own ssh: many questions in flight, answers in any
// order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "stores/sftp/sftp_packet.h"
#include "sys/fd.h"

namespace overcap {

struct SftpTarget {
  std::string user, host;  // user "": as ssh's configuration says
  int port = 0;            // 0: the same
  std::string program = "ssh";
  std::vector<std::string> env;  // of ssh
  std::string location;          // for messages
  int64_t greeting_us = 60'000'000;
  int64_t answer_us = 120'000'000;  // a disk that is busy may take its time
};

// The words that start ssh. Pure.
std::vector<std::string> SshWords(const SftpTarget& target);
// What ssh's last words mean. Pure.
Error SshError(const SftpTarget& target, std::string_view words);

struct SftpReply {
  SftpType type = SftpType::kStatus;
  std::string body;  // without the id
};

// Any number of threads. Errors are kUnavailable (and kDenied, kUsage from Start): after one the link is
// dead.
class SftpLink {
 public:
  // Starts ssh and greets. One thread at a time (sys/process.h).
  static Result<std::shared_ptr<SftpLink>> Start(const SftpTarget& target);
  ~SftpLink();

  // A question whose body is `body` and `data`; its number. Each is to be waited for or forgotten.
  Result<uint32_t> Ask(SftpType type, std::string_view body, std::string_view data = {});
  Result<SftpReply> Wait(uint32_t id);
  void Forget(uint32_t id);
  Result<SftpReply> Call(SftpType type, const SftpBody& body);

  bool dead() const { return dead_; }
  bool Offers(const std::string& extension) const { return version_.extensions.contains(extension); }
  uint32_t read_size() const { return read_size_; }
  uint32_t write_size() const { return write_size_; }

 private:
  struct Slot {
    std::condition_variable answered;
    bool done = false, forgotten = false;
    SftpReply reply;
  };

  explicit SftpLink(SftpTarget target) : target_(std::move(target)) {}
  Result<void> Greet();
  void AskLimits();
  void Listen();  // the thread that reads
  bool TakeBytes(std::string* bytes);
  void Deliver(const SftpFrame& frame);
  void Die(std::string why);
  tl::unexpected<Error> Lost();
  Result<void> Write(std::string_view head, std::string_view body, std::string_view data);

  const SftpTarget target_;
  Fd to_, from_, words_;  // its stdin, stdout, stderr
  pid_t pid_ = -1;
  SftpVersion version_;
  uint32_t read_size_ = 32 * 1024, write_size_ = 32 * 1024;  // what every server takes
  std::atomic<bool> dead_{false};
  std::thread listener_;

  std::mutex write_mutex_;  // who holds it writes a packet
  std::mutex mutex_;        // guards all below
  std::map<uint32_t, std::shared_ptr<Slot>> slots_;
  uint32_t next_id_ = 10;
  std::string why_dead_;
  std::string said_;  // the last of what ssh wrote to its stderr
};

}  // namespace overcap
