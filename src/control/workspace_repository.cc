// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_repository.h"

#include <utility>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// 32 random bytes as text: a key file can be read aloud, mailed and printed.
std::string FreshKey(Random& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string key;
  for (int word = 0; word < 4; ++word) {
    uint64_t bits = random.Next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) key += kDigits[bits & 15];
  }
  return key + "\n";
}

Result<std::string> PlaceOfStore(const WorkspaceWorld& world, const RepositoryWish& wish,
                                 const Workspace& workspace) {
  if (wish.store.empty()) {
    return workspace.secret == WorkspaceSecret::kNone
               ? SharedRepositoryOf(workspace.root)
               : WorkspaceBook(workspace.root).FolderOf(workspace.name) + "/repository";
  }
  if (wish.store.starts_with('/') || wish.store.starts_with('~') || wish.store.starts_with('$'))
    return ExpandHere(world, wish.store);
  return wish.store;
}

// Readable by its owner only, and never over one that is there.
Result<std::string> KeyFileBytes(const WorkspaceWorld& world, const std::string& path, bool may_make,
                                 std::string* made) {
  PosixFiles files;
  if (files.Exists(path) || !may_make) return ReadKeyFile(path);
  OC_TRY_VOID(files.MakeFolders(path.substr(0, path.rfind('/'))));
  const std::string key = FreshKey(*world.random);
  auto created = files.CreateExclusive(path, key);
  if (!created && created.error().code == ErrorCode::kConflict) return ReadKeyFile(path);
  if (!created) return Fail(created.error());
  *made = path;
  return key;
}

Result<std::string> SecretFor(const WorkspaceWorld& world, const RepositoryWish& wish, bool fresh,
                              const Workspace& workspace, std::string* made) {
  if (workspace.secret == WorkspaceSecret::kNone) return std::string();
  if (workspace.secret == WorkspaceSecret::kKeyFile) {
    OC_TRY(path, ExpandHere(world, workspace.key_file));
    return KeyFileBytes(world, path, wish.may_make && fresh, made);
  }
  const std::string prompt =
      StrCat(fresh ? "new passphrase" : "passphrase", " for workspace '", workspace.name, "'");
  return GetPassphrase(world, prompt, fresh);
}

}  // namespace

NewRepository::NewRepository(NewRepository&& other) noexcept
    : repository_(std::move(other.repository_)),
      made_(std::exchange(other.made_, false)),
      made_folder_(std::exchange(other.made_folder_, "")),
      made_key_file_(std::exchange(other.made_key_file_, "")) {}

void NewRepository::Keep() {
  made_ = false;
  made_folder_.clear();
  made_key_file_.clear();
}

// Somebody else may have begun to use it meanwhile: then it stays.
NewRepository::~NewRepository() {
  PosixFiles files;
  bool used = false;
  if (made_ && repository_) {
    Store& store = repository_->store();
    for (const char* prefix : {"snapshots/", "writers/", "code/", "blobs/"}) {
      const auto objects = store.List(prefix, "");
      used = used || !objects || !objects->objects.empty();
    }
    for (const char* key : {"config", "config-copy"}) {
      if (!used) (void)store.Remove(key);
    }
  }
  if (used) return;
  repository_.reset();
  if (!made_folder_.empty()) (void)files.RemoveTree(made_folder_);
  if (!made_key_file_.empty()) (void)files.Remove(made_key_file_);
}

Result<NewRepository> NewRepository::Open(const WorkspaceWorld& world, const RepositoryWish& wish,
                                          Workspace* workspace) {
  if (!wish.key_file.empty() && wish.passphrase) {
    return Fail(ErrorCode::kUsage, "a key file and a passphrase cannot both be what opens a repository");
  }
  workspace->secret = !wish.key_file.empty() ? WorkspaceSecret::kKeyFile
                      : wish.passphrase      ? WorkspaceSecret::kPassphrase
                                             : WorkspaceSecret::kNone;
  workspace->key_file = wish.key_file;
  OC_TRY(place, PlaceOfStore(world, wish, *workspace));
  workspace->store = std::move(place);
  if (!wish.saved.empty() && (workspace->store + "/").starts_with(wish.saved + "/")) {
    return Fail(ErrorCode::kUsage, StrCat("the repository '", workspace->store,
                                          "' would be inside of the workspace that it saves"));
  }
  NewRepository made;
  const bool folder_there = !workspace->store.starts_with('/') || PosixFiles().Exists(workspace->store);
  OC_TRY(store, OpenStoreFor(world, workspace->store, wish.may_make));
  // What all plain workspaces and the code of jobs share is nobody's to take back: a submit may have just
  // opened it.
  const bool shared_by_all = workspace->store == SharedRepositoryOf(workspace->root);
  if (!folder_there && !shared_by_all) made.made_folder_ = workspace->store;
  const std::shared_ptr<Store> shared(std::move(store));
  const Repository::Parts parts{.store = shared, .clock = world.clock, .random = world.random};
  const auto config = shared->Stat("config");
  const bool fresh = !config && config.error().code == ErrorCode::kNotFound;
  if (!config && !fresh) return Fail(config.error());
  if (fresh && !wish.may_make)
    return Fail(ErrorCode::kNotFound, StrCat("there is no repository in '", workspace->store, "'"));
  OC_TRY(secret, SecretFor(world, wish, fresh, *workspace, &made.made_key_file_));
  auto repository = fresh ? Repository::Create(parts, secret) : Repository::Open(parts, secret);
  if (!repository && fresh && repository.error().code == ErrorCode::kConflict) {  // somebody was faster
    repository = Repository::Open(parts, secret);
  } else {
    made.made_ = repository && fresh && !shared_by_all;
  }
  if (!repository && repository.error().code == ErrorCode::kDenied && secret.empty()) {
    return Fail(ErrorCode::kDenied, repository.error().message,
                "--key-file F or --passphrase opens it; --store PATH makes another one");
  }
  if (!repository) return Fail(repository.error());
  made.repository_ = std::move(*repository);
  return made;
}

}  // namespace overcap
