// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_create.h"

#include <algorithm>

#include "base/text.h"
#include "control/run_step.h"
#include "control/usable_folders.h"
#include "control/workspace_contents.h"
#include "control/workspace_repository.h"
#include "snapshot/format/snapshot_record.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kVenv = "/.venv", kConda = "/.conda";

std::string FreshId(Random& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (int word = 0; word < 2; ++word) {
    uint64_t bits = random.Next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

// Programs that are missing are told before anything is made.
Result<std::vector<std::string>> EnvCommand(const WorkspaceWorld& world, const std::string& env,
                                            const std::string& folder) {
  const auto has = [&](std::string_view program) {
    return ResolveProgram(program, PathOf(world.variables.entries()), "/").has_value();
  };
  if (env == "none") return std::vector<std::string>();
  if (env == "venv") {
    if (has("python3")) return std::vector<std::string>{"python3", "-m", "venv", StrCat(folder, kVenv)};
    return Fail(ErrorCode::kNotFound, "'python3' is not on PATH", "--env none makes no environment");
  }
  if (env != "conda") {
    return Fail(ErrorCode::kUsage, StrCat("an environment is conda, venv or none, not ", Quoted(env)));
  }
  for (const char* program : {"conda", "mamba", "micromamba"}) {
    if (has(program))
      return std::vector<std::string>{program, "create", "--yes", "--prefix", StrCat(folder, kConda),
                                      "python"};
  }
  return Fail(ErrorCode::kNotFound, "none of conda, mamba and micromamba is on PATH",
              "--env venv makes a virtual environment of Python instead");
}

Result<std::vector<std::vector<std::string>>> SetupCommands(const std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> commands;
  for (const std::string& line : lines) {
    auto words = SplitWords(line);
    if (!words) return Fail(ErrorCode::kUsage, StrCat("a quote is not closed in ", Quoted(line)));
    if (words->empty()) return Fail(ErrorCode::kUsage, "a setup command has no words");
    commands.push_back(std::move(*words));
  }
  return commands;
}

Result<bool> IsEmptyOrMissing(const std::string& folder) {
  auto names = PosixFiles().List(folder);
  if (!names && names.error().code == ErrorCode::kNotFound) return true;
  if (!names) return Fail(names.error());
  return names->empty();
}

Result<void> CheckFolder(const WorkspaceCreateRequest& request, const std::string& folder) {
  if (const std::string above = WorkspaceAbove(folder); !above.empty()) {
    return Fail(ErrorCode::kConflict, StrCat("'", above, "' is a workspace already"),
                above == folder ? "'overcap workspace status' tells more"
                                : "a workspace cannot be inside of another one");
  }
  OC_TRY(empty, IsEmptyOrMissing(folder));
  if (empty || request.adopt) return {};
  return Fail(ErrorCode::kConflict, StrCat("'", folder, "' is not empty"),
              "--adopt makes a workspace of what is there; --at DIR names another folder");
}

Result<void> CheckNameIsFree(const WorkspaceWorld& world, const std::string& name) {
  OC_TRY_VOID(ValidWorkspaceName(name));
  for (const std::string& root : world.roots) {
    const auto taken = WorkspaceBook(root).Find(name);
    if (!taken && taken.error().code == ErrorCode::kNotFound) continue;
    if (!taken) return Fail(taken.error());
    return Fail(ErrorCode::kConflict, StrCat("there is a workspace '", name, "' already"),
                StrCat("'overcap workspace init ", name, "' brings it here"));
  }
  return {};
}

// Takes back what was made, unless it is told that all went well.
class FolderGuard {
 public:
  FolderGuard(std::string folder, bool was_empty) : folder_(std::move(folder)), was_empty_(was_empty) {
    PosixFiles files;
    had_env_ = files.Exists(StrCat(folder_, kVenv)) || files.Exists(StrCat(folder_, kConda));
  }
  FolderGuard(const FolderGuard&) = delete;
  ~FolderGuard() {
    if (kept_) return;
    PosixFiles files;
    if (!made_.empty()) {
      (void)files.RemoveTree(made_);
      return;
    }
    const auto names = files.List(folder_);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      const std::string path = StrCat("/", name);
      const bool ours = path == "/.overcap" || (!had_env_ && (path == kVenv || path == kConda));
      if (was_empty_ || ours) (void)files.RemoveTree(folder_ + path);
    }
  }
  std::string* made() { return &made_; }
  void Keep() { kept_ = true; }

 private:
  std::string folder_;
  bool was_empty_;
  bool had_env_ = false;
  std::string made_;  // the topmost folder that was not there
  bool kept_ = false;
};

// Which kind of environment a snapshot has.
Result<std::string> EnvIn(const Repository& repository, const NamedSnapshot& snapshot) {
  OC_TRY(contents, SnapshotContents::Open(repository));
  if (contents.Find(snapshot, std::string(kVenv.substr(1)))) return std::string("venv");
  if (contents.Find(snapshot, std::string(kConda.substr(1)))) return std::string("conda");
  return std::string("none");
}

class Creation {
 public:
  Creation(const WorkspaceWorld& world, const WorkspaceCreateRequest& request)
      : world_(world), request_(request) {}

  Result<WorkspaceCreated> Run() {
    OC_TRY_VOID(Check());
    Workspace& workspace = found_.workspace;
    OC_TRY(repository, NewRepository::Open(world_,
                                           {.store = request_.store,
                                            .key_file = request_.key_file,
                                            .passphrase = request_.passphrase,
                                            .saved = found_.folder},
                                           &workspace));
    OC_TRY_VOID(CheckUnused(repository.repository()));
    if (!repository.made_key_file().empty())
      Tell(
          StrCat("made the key file '", repository.made_key_file(), "': without it no snapshot can be read"));
    FolderGuard guard(found_.folder, was_empty_);
    OC_TRY_VOID(MakeWorkFolder(found_.folder, world_.user, std::string(world_.variables.Get("TMPDIR")),
                               guard.made()));
    OC_TRY(lock, LockWorkspace(found_.folder, "overcap workspace create", *world_.clock));
    OC_TRY_VOID(SetUp());
    auto first = SaveFirst(repository.repository());
    if (!first) return Fail(first.error());
    guard.Keep();
    repository.Keep();
    found_.copy = ReadWorkspaceCopy(found_.folder).value_or(WorkspaceCopy{});
    return WorkspaceCreated{found_, std::move(*first)};
  }

  // What can be known before anything is made.
  Result<void> Check() {
    OC_TRY_VOID(CheckNameIsFree(world_, request_.name));
    OC_TRY(folder, ExpandHere(world_, request_.at));
    OC_TRY_VOID(CheckFolder(request_, folder));
    OC_TRY(env, EnvCommand(world_, request_.env, folder));
    OC_TRY(setup, SetupCommands(request_.setup));
    OC_TRY(empty, IsEmptyOrMissing(folder));
    was_empty_ = empty;
    env_command_ = std::move(env);
    setup_commands_ = std::move(setup);
    found_.folder = std::move(folder);
    Workspace& workspace = found_.workspace;
    workspace.name = request_.name;
    workspace.id = FreshId(*world_.random);
    workspace.at = request_.at;
    workspace.env = request_.env;
    workspace.setup = request_.setup;
    workspace.exclude = request_.exclude;
    workspace.created_us = world_.clock->WallUs();
    workspace.host = world_.host;
    workspace.user = world_.user;
    workspace.root = world_.roots.at(0);
    return {};
  }

  FoundWorkspace& found() { return found_; }

 private:
  void Tell(const std::string& step) const {
    if (request_.tell) request_.tell(step);
  }

  // Snapshots of this name that no registry of ours knows would be mixed up with the new ones.
  Result<void> CheckUnused(const Repository& repository) const {
    OC_TRY(snapshots, repository.Snapshots(request_.name));
    if (snapshots.empty()) return {};
    return Fail(ErrorCode::kConflict,
                StrCat("'", found_.workspace.store, "' has ",
                       CountOf(static_cast<int64_t>(snapshots.size()), "snapshot"), " of a workspace '",
                       request_.name, "' that is not known here"),
                StrCat("'overcap workspace init ", request_.name, " --store ",
                       ShellQuote(found_.workspace.store), "' brings it here; another name makes a new one"));
  }

  Result<void> RunIn(const std::vector<std::string>& argv, const Variables& variables) const {
    Tell(StrCat("running ", ShellJoin(argv)));
    SpawnRequest spawn;
    spawn.argv = argv;
    spawn.env = variables.entries();
    spawn.cwd = found_.folder;
    return RunStep(std::move(spawn), request_.backup.stop);
  }

  Result<void> SetUp() const {
    PosixFiles files;
    const std::string prefix = found_.folder + std::string(request_.env == "conda" ? kConda : kVenv);
    if (!env_command_.empty() && !files.Exists(prefix)) OC_TRY_VOID(RunIn(env_command_, world_.variables));
    OC_TRY_VOID(WriteActivate(found_.workspace, found_.folder));
    const Variables inside = WorkspaceVariables(world_, found_.workspace, found_.folder);
    for (const std::vector<std::string>& command : setup_commands_) OC_TRY_VOID(RunIn(command, inside));
    return {};
  }

  Result<WorkspaceBackup> SaveFirst(const Repository& repository) {
    OC_TRY(first, BackUpLocked(world_, found_, repository, request_.backup));
    WorkspaceBook book(found_.workspace.root);
    auto added = book.Add(found_.workspace);
    if (added) return first;
    if (first.report.snapshot) (void)repository.Forget(*first.report.snapshot);
    if (!book.Find(request_.name)) (void)book.Remove(request_.name);
    return Fail(added.error());
  }

  const WorkspaceWorld& world_;
  const WorkspaceCreateRequest& request_;
  FoundWorkspace found_;
  bool was_empty_ = true;
  std::vector<std::string> env_command_;
  std::vector<std::vector<std::string>> setup_commands_;
};

}  // namespace

Variables WorkspaceVariables(const WorkspaceWorld& world, const Workspace& workspace,
                             const std::string& folder) {
  Variables variables = world.variables;
  variables.Set("OVERCAP_WORKSPACE", workspace.name);
  variables.Set("CCACHE_DIR", LocalFolderOf(folder) + "/ccache");
  const std::string prefix = folder + std::string(workspace.env == "conda" ? kConda : kVenv);
  if (workspace.env == "none") return variables;
  variables.Set(workspace.env == "conda" ? "CONDA_PREFIX" : "VIRTUAL_ENV", prefix);
  variables.Remove("PYTHONHOME");
  variables.Set("PATH", StrCat(prefix, "/bin:", PathOf(world.variables.entries())));
  return variables;
}

Result<WorkspaceCreated> CreateWorkspace(const WorkspaceWorld& world, const WorkspaceCreateRequest& request) {
  return Creation(world, request).Run();
}

Result<FoundWorkspace> RegisterWorkspace(const WorkspaceWorld& world, const WorkspaceCreateRequest& request) {
  OC_TRY_VOID(CheckNameIsFree(world, request.name));
  FoundWorkspace found;
  OC_TRY(folder, ExpandHere(world, request.at));
  found.folder = std::move(folder);
  Workspace& workspace = found.workspace;
  workspace.name = request.name;
  workspace.id = FreshId(*world.random);
  workspace.at = request.at;
  workspace.exclude = request.exclude;
  workspace.created_us = world.clock->WallUs();
  workspace.host = world.host;
  workspace.user = world.user;
  workspace.root = world.roots.at(0);
  OC_TRY(repository, NewRepository::Open(world,
                                         {.store = request.store,
                                          .key_file = request.key_file,
                                          .passphrase = request.passphrase,
                                          .may_make = false},
                                         &workspace));
  OC_TRY(snapshots, repository.repository().Snapshots(request.name));
  if (snapshots.empty()) {
    return Fail(ErrorCode::kNotFound,
                StrCat("'", workspace.store, "' has no snapshot of a workspace '", request.name, "'"));
  }
  OC_TRY(env, EnvIn(repository.repository(), snapshots.back()));
  workspace.env = std::move(env);
  OC_TRY_VOID(WorkspaceBook(workspace.root).Add(workspace));
  repository.Keep();
  return found;
}

}  // namespace overcap
