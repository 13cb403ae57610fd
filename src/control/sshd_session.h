// SPDX-License-Identifier: Apache-2.0
// `overcap enter-sshd`: an sshd for one connection, on stdin and stdout, inside an allocation. It belongs to
// the user, takes only the user's keys, and what it starts has the job's environment and limits. Hidden.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

struct SshdRequest {
  std::string sshd;                     // absolute
  std::string host_key;                 // its private half
  std::vector<std::string> authorized;  // files of keys that may come in
  std::string user;
  std::vector<std::string> forced;  // the command that every session runs
  std::string sftp_server;          // absolute; "": there is none
};
// Pure. kUsage when a path cannot be written as sshd's options need it.
Result<std::vector<std::string>> SshdCommand(const SshdRequest& request);

Result<int> RunEnterSshd(const std::vector<std::string>& words);

}  // namespace overcap
