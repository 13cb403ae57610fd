// SPDX-License-Identifier: Apache-2.0
#include "snapshot/testing/sample_folder.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace overcap {
namespace fs = std::filesystem;

void PutFile(const std::string& path, std::string_view content, bool executable) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
  ASSERT_EQ(chmod(path.c_str(), executable ? 0755 : 0644), 0) << path;
}

std::map<std::string, std::string> Describe(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string().substr(folder.size() + 1);
    struct stat status;
    EXPECT_EQ(lstat(entry.path().c_str(), &status), 0);
    if (S_ISLNK(status.st_mode)) {
      all[path] = "link " + fs::read_symlink(entry.path()).string();
    } else if (S_ISDIR(status.st_mode)) {
      all[path] = "dir";
    } else {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string content{std::istreambuf_iterator<char>(in), {}};
      all[path] = ((status.st_mode & S_IXUSR) != 0 ? "exec " : "file ") + content;
    }
  }
  return all;
}

std::string RunProgram(const std::vector<std::string>& argv, const std::string& folder,
                       std::string_view input) {
  const TempFolder temp;
  std::ofstream(temp / "in", std::ios::binary) << input;
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const int in = open((temp / "in").c_str(), O_RDONLY);
    const int out = open((temp / "out").c_str(), O_WRONLY | O_CREAT, 0600);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    setenv("GIT_CEILING_DIRECTORIES", "/", 1);
    if (chdir(folder.c_str()) != 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0) _exit(99);
    execvp(words[0], words.data());
    _exit(99);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << argv[0] << " status " << status;
  std::ifstream out(temp / "out", std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(out), {}};
}

bool GitIsThere() {
  const std::string path = getenv("PATH") == nullptr ? "" : getenv("PATH");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    if (access((path.substr(at, end - at) + "/git").c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

SnapshotStore OpenTestStore(const TempFolder& temp, const Clock* clock) {
  StoreOptions options;
  options.clock = clock;
  options.lock_timeout_ms = 100;
  return std::move(*SnapshotStore::Open(temp / "root/store", options));
}

}  // namespace overcap
