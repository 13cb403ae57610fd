// SPDX-License-Identifier: Apache-2.0
// <root>/ssh: the keys with which a person comes into an allocation. They never leave the folder.
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

struct SshKeys {
  std::string folder;
  std::string Host() const { return folder + "/host_key"; }  // of the sshd inside an allocation
  std::string Person() const { return folder + "/id"; }      // of who comes
  std::string Authorized() const { return folder + "/authorized_keys"; }
  std::string KnownHosts() const { return folder + "/known_hosts"; }
};
SshKeys SshKeysOf(const std::string& root);

// Makes what is missing, once: two who come at the same time end up with the same keys. kUnavailable where
// there is no ssh-keygen.
Result<void> MakeSshKeys(const SshKeys& keys);

// Pure: the files that follow from the keys' public halves ("ssh-ed25519 AAAA... comment").
std::string AuthorizedKeysText(std::string_view person_public);
std::string KnownHostsText(std::string_view host_public);

}  // namespace overcap
