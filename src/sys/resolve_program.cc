// SPDX-License-Identifier: Apache-2.0
// ResolveProgram of sys/process.h.
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/process.h"

namespace overcap {
namespace {

enum class Found { kNo, kDenied, kYes };

std::string InFolder(std::string_view folder, std::string_view cwd, std::string_view name) {
  std::string out;
  if (!folder.starts_with('/') && !cwd.empty()) out = StrCat(cwd, "/");
  if (!folder.empty()) out += StrCat(folder, "/");
  return StrCat(out, name);
}

Found Look(const std::string& file) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return errno == EACCES ? Found::kDenied : Found::kNo;
  if (S_ISDIR(info.st_mode)) return Found::kDenied;
  return access(file.c_str(), X_OK) == 0 ? Found::kYes : Found::kDenied;
}

Error NotThere(std::string_view argv0, Found found, std::string_view where) {
  if (found == Found::kDenied) {
    return {ErrorCode::kDenied, StrCat("command '", argv0, "' may not be executed"),
            StrCat("is it a program? try: chmod +x ", ShellQuote(argv0))};
  }
  return {ErrorCode::kNotFound, StrCat("command '", argv0, "' does not exist"), std::string(where)};
}

}  // namespace

Result<std::string> ResolveProgram(std::string_view argv0, std::string_view path, std::string_view cwd) {
  if (argv0.empty()) return Fail(ErrorCode::kUsage, "the command is an empty word");
  if (argv0.find('/') != std::string_view::npos) {
    const std::string file = argv0.starts_with('/') ? std::string(argv0) : InFolder("", cwd, argv0);
    const Found found = Look(file);
    if (found != Found::kYes) return Fail(NotThere(argv0, found, StrCat("looked for ", ShellQuote(file))));
    return file;
  }
  Found best = Found::kNo;
  for (const std::string& folder : Split(path, ':')) {
    const std::string file = InFolder(folder, cwd, argv0);
    const Found found = Look(file);
    if (found == Found::kYes) return file;
    struct stat info;  // a folder of PATH that may not be read says nothing about the command
    if (found == Found::kDenied && stat(file.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) best = found;
  }
  return Fail(NotThere(argv0, best, StrCat("looked in PATH: ", path)));
}

}  // namespace overcap
