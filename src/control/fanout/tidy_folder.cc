// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/tidy_folder.h"

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "stores/store.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

class Tidier {
 public:
  Tidier(const std::set<std::string>& files, Partials partials) : files_(files), partials_(partials) {}

  Result<void> Clear(const fs::path& folder, const std::string& inside) {
    std::error_code error;
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      const std::string name = at->path().filename().native();
      if (inside.empty() && name == ".overcap") continue;
      OC_TRY_VOID(Look(at->path(), StrCat(inside, name), name));
    }
    return error ? Failed(error, folder) : Result<void>();
  }

 private:
  Result<void> Look(const fs::path& path, const std::string& key, const std::string& name) {
    std::error_code error;
    const fs::file_type type = fs::symlink_status(path, error).type();
    if (type == fs::file_type::directory && IsFolderOfSome(key)) return Clear(path, key + "/");
    const bool partial = name.starts_with(kPartialBegin) && partials_ == Partials::kStay;
    if (type == fs::file_type::regular && (partial || files_.contains(key))) return {};
    fs::remove_all(path, error);  // follows no link
    return error ? Failed(error, path) : Result<void>();
  }

  bool IsFolderOfSome(const std::string& key) const {
    const auto first = files_.lower_bound(key + "/");
    return first != files_.end() && first->starts_with(key + "/");
  }

  static Result<void> Failed(const std::error_code& error, const fs::path& path) {
    return Fail(ErrnoError(error.value(), StrCat("cannot tidy ", Quoted(path.native(), 300))));
  }

  const std::set<std::string>& files_;
  const Partials partials_;
};

}  // namespace

Result<void> TidyFolder(const std::string& folder, const std::set<std::string>& files, Partials partials) {
  return Tidier(files, partials).Clear(folder, "");
}

}  // namespace overcap
