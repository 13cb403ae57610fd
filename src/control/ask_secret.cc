// SPDX-License-Identifier: Apache-2.0
#include "control/ask_secret.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int kPatienceMs = 120'000;
constexpr size_t kLongest = 4096;

// Takes single keys, without echo and without signals: whatever is typed, the terminal is as it was when it
// goes.
class QuietKeys {
 public:
  explicit QuietKeys(int fd) : fd_(fd) {
    ok_ = tcgetattr(fd, &before_) == 0;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    ok_ = ok_ && tcsetattr(fd, TCSAFLUSH, &quiet) == 0;
  }
  QuietKeys(const QuietKeys&) = delete;
  ~QuietKeys() {
    if (ok_) tcsetattr(fd_, TCSAFLUSH, &before_);
  }
  bool ok() const { return ok_; }

 private:
  int fd_;
  bool ok_ = false;
  termios before_{};
};

enum class Key { kMore, kDone, kLeft };

Key TakeKey(char key, std::string* typed) {
  constexpr char kCtrlC = 3, kCtrlD = 4, kBackspace = 8, kCtrlU = 21, kCtrlBackslash = 28, kDelete = 127;
  if (key == '\n' || key == '\r' || key == kCtrlD) return Key::kDone;
  if (key == kCtrlC || key == kCtrlBackslash) return Key::kLeft;
  if (key == kCtrlU) {
    typed->clear();
  } else if (key == kBackspace || key == kDelete) {
    if (!typed->empty()) typed->pop_back();
  } else if (typed->size() < kLongest) {
    typed->push_back(key);
  }
  return Key::kMore;
}

Result<std::string> ReadKeys(int fd) {
  std::string typed;
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    char key = 0;
    if (ready <= 0 || read(fd, &key, 1) != 1)
      return Fail(ErrorCode::kDenied, "nobody has typed the passphrase");
    const Key next = TakeKey(key, &typed);
    if (next == Key::kLeft) return Fail(ErrorCode::kDenied, "no passphrase was given");
    if (next == Key::kDone) return typed;
  }
}

}  // namespace

Result<std::string> AskSecret(const std::string& prompt) {
  const Fd fd(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    return Fail(ErrorCode::kDenied, "a passphrase is needed, and there is no terminal to ask on",
                "put it into a file that only you can read, and its path into OVERCAP_PASSPHRASE_FILE");
  }
  const QuietKeys quiet(fd.Get());
  if (!quiet.ok()) return Fail(ErrnoError(errno, "cannot ask on the terminal"));
  (void)WriteAll(fd.Get(), prompt);
  auto typed = ReadKeys(fd.Get());
  (void)WriteAll(fd.Get(), "\n");
  return typed;
}

}  // namespace overcap
