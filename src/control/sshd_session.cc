// SPDX-License-Identifier: Apache-2.0
#include "control/sshd_session.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/text.h"
#include "control/enter.h"
#include "control/ssh_keys.h"
#include "control/submitter_environment.h"
#include "sys/own_host_name.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr std::string_view kSshdFolders = "/usr/sbin:/usr/local/sbin:/sbin:/usr/local/bin:/usr/bin";
constexpr const char* kSftpServers[] = {"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
                                        "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server",
                                        "/usr/lib64/ssh/sftp-server"};
constexpr const char* kRootsFolder = "/run/sshd";  // an sshd of root does not start without it

// `tokens`: sshd takes a '%' in this one for its own.
Result<std::string> OptionValue(std::string_view path, bool tokens) {
  const bool odd = std::any_of(path.begin(), path.end(),
                               [](unsigned char c) { return c < ' ' || c == '"' || c == '\\' || c == 0x7F; });
  if (odd) return Fail(ErrorCode::kUsage, StrCat("sshd cannot be told of path ", Quoted(path)));
  std::string value;
  for (const char c : path) value.append(tokens && c == '%' ? 2 : 1, c);
  return value.find(' ') == std::string::npos ? value : StrCat('"', value, '"');
}

Result<std::string> FindSshd() {
  auto sshd = ResolveProgram("sshd", kSshdFolders, "/");
  if (sshd) return sshd;
  return Fail(ErrorCode::kUnavailable, StrCat("there is no sshd on '", OwnHostName(), "'"),
              "`overcap ssh NAME` works without one");
}

std::string FindSftpServer() {
  for (const char* path : kSftpServers) {
    if (access(path, X_OK) == 0) return path;
  }
  return {};
}

// Nobody but the user can have written it: else sshd itself would not believe it either.
bool IsPrivate(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return false;
  return (info.st_uid == geteuid() || info.st_uid == 0) && (info.st_mode & 022) == 0;
}

// The keys with which the user comes to the cluster may come in here too: a laptop needs no other.
std::vector<std::string> AuthorizedFiles(const SshKeys& keys) {
  std::vector<std::string> files = {keys.Authorized()};
  const auto home = HomeFolder();
  if (!home) return files;
  const std::string usual = *home + "/.ssh/authorized_keys";
  if (IsPrivate(*home) && IsPrivate(*home + "/.ssh") && IsPrivate(usual)) files.push_back(usual);
  return files;
}

// A terminal would change what goes through it.
void MakeStdoutRaw() {
  termios modes{};
  if (tcgetattr(STDOUT_FILENO, &modes) != 0) return;
  cfmakeraw(&modes);
  (void)tcsetattr(STDOUT_FILENO, TCSANOW, &modes);
}

// The variables of the sessions, in a private file that goes with this process.
struct VariablesFile {
  std::string path;
  ~VariablesFile() { unlink(path.c_str()); }
};

Result<int> RunSshd(const std::vector<std::string>& argv) {
  SpawnRequest request;
  request.program = argv[0];
  request.argv = argv;
  request.env = OwnEnvironment();
  request.cwd = "/";
  request.stdin_fd = STDIN_FILENO, request.stdout_fd = STDOUT_FILENO, request.stderr_fd = STDERR_FILENO;
  request.group = ProcessGroup::kInherit;
  request.parent_death_signal = SIGTERM;
  OC_TRY(spawned, Spawn(request));
  int status = 0;
  // As long as the person stays; the cluster's launcher ends both when the connection is gone.
  while (waitpid(spawned.pid, &status, 0) < 0 && errno == EINTR) continue;
  // How a connection ended is told by ssh itself; here it would be an error of the cluster's launcher.
  return 0;
}

}  // namespace

Result<std::vector<std::string>> SshdCommand(const SshdRequest& request) {
  std::vector<std::string> argv = {request.sshd, "-i", "-e", "-f", "/dev/null"};
  std::vector<std::string> authorized;
  for (const std::string& path : request.authorized) {
    OC_TRY(value, OptionValue(path, true));
    authorized.push_back(std::move(value));
  }
  OC_TRY(host_key, OptionValue(request.host_key, false));
  std::vector<std::string> options = {
      "HostKey=" + host_key,
      "AuthorizedKeysFile=" + Join(authorized, " "),
      "AllowUsers=" + request.user,
      "ForceCommand=" + ShellJoin(request.forced),
      "AuthenticationMethods=publickey",
      "PasswordAuthentication=no",
      "KbdInteractiveAuthentication=no",
      "PermitRootLogin=yes",  // where the user is root; nobody else may come
      "StrictModes=no",       // the files were looked at already, and shared folders are not what it expects
      "UsePAM=no",
      "PidFile=none",
      "PrintMotd=no",
      "PrintLastLog=no",
      "UseDNS=no",
      "LogLevel=ERROR",
      "AcceptEnv=LANG LC_* TZ",
      "AllowTcpForwarding=yes",
      "AllowStreamLocalForwarding=yes",
  };
  if (!request.sftp_server.empty()) options.push_back("Subsystem=sftp " + request.sftp_server);
  for (std::string& option : options) argv.insert(argv.end(), {"-o", std::move(option)});
  return argv;
}

Result<int> RunEnterSshd(const std::vector<std::string>& words) {
  OC_TRY(options, ParseEnterOptions({words.begin() + 1, words.end()}));
  OC_TRY(place, PlanPlace(options, OwnEnvironment()));
  OC_TRY(sshd, FindSshd());
  const VariablesFile file{StrCat(options.job, "/attempt-", options.attempt, "/ssh-", OwnHostName(), "-",
                                  static_cast<int64_t>(getpid()))};
  OC_TRY_VOID(PosixFiles().WriteAtomic(file.path, EnvironmentBlob(place.environment), false));
  const SshKeys keys{options.keys};
  SshdRequest request{
      .sshd = std::move(sshd),
      .host_key = keys.Host(),
      .authorized = AuthorizedFiles(keys),
      .user = UserName(),
      .forced = {OwnProgram(), "enter", "--ssh", "--environment", file.path, "--folder", place.folder},
      .sftp_server = FindSftpServer()};
  OC_TRY(argv, SshdCommand(request));
  if (geteuid() == 0) (void)mkdir(kRootsFolder, 0755);
  MakeStdoutRaw();
  return RunSshd(argv);
}

}  // namespace overcap
