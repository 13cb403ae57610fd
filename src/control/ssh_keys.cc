// SPDX-License-Identifier: Apache-2.0
#include "control/ssh_keys.h"

#include "base/text.h"
#include "control/file_lock.h"
#include "control/submitter_environment.h"
#include "sys/capture_output.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kPatience{20};

// Under another name first: a key is there whole or not at all.
Result<void> MakeKey(const std::string& path) {
  PosixFiles files;
  if (files.Exists(path) && files.Exists(path + ".pub")) return {};
  const std::string fresh = path + ".new";
  for (const std::string& old : {fresh, fresh + ".pub"}) OC_TRY_VOID(files.Remove(old));
  SpawnRequest request;
  request.env = OwnEnvironment();
  auto program = ResolveProgram("ssh-keygen", PathOf(request.env), "/");
  if (!program) {
    return Fail(ErrorCode::kUnavailable, "there is no 'ssh-keygen' here", "install OpenSSH's client");
  }
  request.program = std::move(*program);
  request.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "overcap", "-f", fresh};
  OC_TRY(captured, CaptureOutput(std::move(request), kPatience));
  if (!captured.end.ok()) {
    return Fail(ErrorCode::kUnavailable,
                StrCat("ssh-keygen could not make '", path, "': ", Quoted(Trim(captured.output))));
  }
  OC_TRY_VOID(files.Rename(fresh + ".pub", path + ".pub"));
  return files.Rename(fresh, path);
}

// "type key" of a public half.
std::string KeyWords(std::string_view line) {
  const std::vector<std::string> words = Split(Trim(line), ' ');
  return words.size() < 2 ? "" : StrCat(words[0], " ", words[1]);
}

Result<void> KeepText(const std::string& path, const std::string& text) {
  PosixFiles files;
  const auto known = files.Read(path);
  if (known && *known == text) return {};
  return files.WriteAtomic(path, text, false);
}

}  // namespace

SshKeys SshKeysOf(const std::string& root) {
  return {root + "/ssh"};
}

std::string AuthorizedKeysText(std::string_view person_public) {
  return StrCat(KeyWords(person_public), " overcap\n");
}

std::string KnownHostsText(std::string_view host_public) {
  return StrCat("overcap-* ", KeyWords(host_public), "\n");
}

Result<void> MakeSshKeys(const SshKeys& keys) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(keys.folder));
  OC_TRY(lock, LockFile(keys.folder + "/lock", kPatience));
  OC_TRY_VOID(MakeKey(keys.Host()));
  OC_TRY_VOID(MakeKey(keys.Person()));
  OC_TRY(person, files.Read(keys.Person() + ".pub"));
  OC_TRY(host, files.Read(keys.Host() + ".pub"));
  OC_TRY_VOID(KeepText(keys.Authorized(), AuthorizedKeysText(person)));
  return KeepText(keys.KnownHosts(), KnownHostsText(host));
}

}  // namespace overcap
