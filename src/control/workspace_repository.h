// SPDX-License-Identifier: Apache-2.0
// The repository of a workspace that is being made: opened where there is one, made where there is none.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "control/workspace_open.h"

namespace overcap {

struct RepositoryWish {
  std::string
      store;  // as written; "": <root>/repository, or <root>/workspaces/<name>/repository with a secret
  std::string key_file;  // as written
  bool passphrase = false;
  bool may_make = true;    // false: kNotFound where there is none
  std::string saved = {};  // the folder that it shall save, in which it cannot be; "": none
};

// What was made for it, and goes again unless it is kept.
class NewRepository {
 public:
  NewRepository(NewRepository&& other) noexcept;
  ~NewRepository();

  // Takes store, secret and key_file of the wish into `workspace`.
  static Result<NewRepository> Open(const WorkspaceWorld& world, const RepositoryWish& wish,
                                    Workspace* workspace);
  const Repository& repository() const { return *repository_; }
  const std::string& made_key_file() const { return made_key_file_; }
  void Keep();

 private:
  NewRepository() = default;

  std::optional<Repository> repository_;
  bool made_ = false;
  std::string made_folder_;    // of a store that was not there before
  std::string made_key_file_;  // expanded
};

}  // namespace overcap
