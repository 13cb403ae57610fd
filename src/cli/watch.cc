// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "control/job_exit_status.h"

namespace overcap::cli {
namespace {

// A terminal is redrawn more often than the cluster is asked: who else looks brings news too, and it costs
// nothing.
constexpr int kRedrawMs = 5'000, kPrintMs = 12'000;
// The other screen of the terminal, without a cursor; and back.
constexpr char kEnter[] = "\033[?1049h\033[?25l\033[H\033[2J";
constexpr char kLeave[] = "\033[?25h\033[?1049l";

volatile sig_atomic_t resized = 0;

void Send(const char* text, size_t size) {
  (void)!write(STDOUT_FILENO, text, size);
}

void End(int) {
  Send(kLeave, sizeof kLeave - 1);
  _exit(kStatusDetached);
}

void Pause(int) {
  const int saved = errno;
  Send(kLeave, sizeof kLeave - 1);
  (void)raise(SIGSTOP);
  Send(kEnter, sizeof kEnter - 1);
  resized = 1;
  errno = saved;
}

void Resize(int) {
  resized = 1;
}

void EndAtOnce(int) {
  _exit(kStatusDetached);
}

void Handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // no SA_RESTART: a sleep ends
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

struct Size {
  int rows = 24, columns = 80;
};
Size TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

// Until the time is over or the window has another size; false when nobody reads stdout any more.
bool Sleep(int milliseconds) {
  pollfd gone{STDOUT_FILENO, 0, 0};
  const int ready = poll(&gone, 1, milliseconds);
  return ready <= 0 || (gone.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

std::string ErrorLine(const Error& error) {
  return StrCat("overcap: ", error.message, "\n");
}

Result<int> WatchInPlace(const WatchFrame& frame, std::string shown, bool color) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) Handle(number, End);
  Handle(SIGTSTP, Pause);
  Handle(SIGWINCH, Resize);
  Send(kEnter, sizeof kEnter - 1);
  std::string trouble;
  while (true) {
    const std::string drawn = DrawInPlace(trouble + shown, TerminalSize().rows, TerminalSize().columns);
    Send(drawn.data(), drawn.size());
    if (resized == 0 && !Sleep(kRedrawMs)) break;
    resized = 0;
    auto next = frame(TerminalSize().columns, color);
    trouble = next ? "" : ErrorLine(next.error());
    if (next) shown = std::move(*next);
  }
  Send(kLeave, sizeof kLeave - 1);
  return 0;
}

Result<int> WatchInTurn(World& world, const WatchFrame& frame, std::string shown) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) Handle(number, EndAtOnce);
  while (true) {
    world.out().Write(shown);
    OC_TRY_VOID(world.out().Flush());
    if (!Sleep(kPrintMs)) return 0;
    auto next = frame(0, false);
    if (!next) {
      world.out().PrintError(next.error());
      shown.clear();
      continue;
    }
    shown = world.out().json() ? std::move(*next) : "\n" + *next;
  }
}

}  // namespace

std::string DrawInPlace(const std::string& text, int rows, int columns) {
  std::vector<std::string> lines = Split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto most = static_cast<size_t>(std::max(1, rows));
  if (lines.size() > most) {
    const size_t more = lines.size() - most + 1;
    lines.resize(most - 1);
    lines.push_back(StrCat("… ", more, " more lines"));
  }
  // Shown at once where the terminal can do that; each line clears what stood behind it.
  std::string out = "\033[?2026h\033[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool fits = DisplayWidth(lines[i]) <= columns;
    out += fits ? lines[i] : StrCat(ShortenToWidth(lines[i], columns), "\033[0m");
    out += i + 1 < lines.size() ? "\033[K\r\n" : "\033[K";
  }
  return out + "\033[J\033[?2026l";
}

Result<int> Watch(World& world, const WatchFrame& frame) {
  const Terminal& terminal = world.out().terminal();
  const char* term = getenv("TERM");
  const bool in_place = terminal.out_is_terminal && !world.out().json() && term != nullptr && *term != '\0' &&
                        std::string_view(term) != "dumb";
  OC_TRY(first, frame(in_place ? terminal.width : 0, in_place && terminal.out_color));
  OC_TRY_VOID(world.out().Flush());
  if (in_place) return WatchInPlace(frame, std::move(first), terminal.out_color);
  return WatchInTurn(world, frame, std::move(first));
}

}  // namespace overcap::cli
