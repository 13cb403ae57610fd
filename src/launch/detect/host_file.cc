// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/host_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>

#include "base/text.h"
#include "launch/detect/host_name.h"
#include "model/host_list.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr int kMaxSlots = 1'000'000;      // of one host
constexpr size_t kMaxBytes = 64'000'000;  // of a file
constexpr int kPipeMs = 10'000;
constexpr std::string_view kSpace = " \t\r\v\f";
constexpr std::string_view kKnown = "known are slots=N, max_slots=N, gpus=N, user=NAME";

tl::unexpected<Error> Wrong(std::string message) {
  return Fail(ErrorCode::kUsage, std::move(message));
}

Result<int> ParseCount(std::string_view what, std::string_view text, int least) {
  const auto number = ParseInt(text);
  if (!number || *number < least || *number > kMaxSlots) {
    return Wrong(StrCat(what, " must be a number from ", least, " to ", kMaxSlots, ", not ", Quoted(text)));
  }
  return static_cast<int>(*number);
}

// One line: which hosts, and what it tells about each of them.
struct Line {
  std::vector<std::string> names;
  int slots = 0, max_slots = 0, gpus = -1;  // as in AllocatedHost
  std::string user;
};

// "[2001:db8::1]:4" or "alice@[2001:db8::1]": where the bracket opens; npos for anything else.
size_t AddressBracket(std::string_view word) {
  const size_t open = word.starts_with('[') ? 0 : word.find("@[") + 1;
  if (word.empty() || word[open] != '[') return word.npos;
  const size_t close = word.find(']', open);
  if (close == word.npos || !IsIpv6(word.substr(open + 1, close - open - 1))) return word.npos;
  return open;
}

// The colon before the number of slots; npos when there is none.
size_t SlotsColon(std::string_view word) {
  const size_t bracket = word.rfind(']');
  const size_t colon = word.find(':', bracket == word.npos ? 0 : bracket);
  const bool only_one = colon != word.npos && word.find(':', colon + 1) == word.npos;
  return only_one ? colon : word.npos;
}

// The first word of a line.
Result<void> ParseHosts(std::string_view word, Line* line) {
  std::string_view hosts = word;
  if (const size_t colon = SlotsColon(word); colon != word.npos) {
    OC_TRY(slots, ParseCount("the number behind ':'", word.substr(colon + 1), 1));
    line->slots = slots;
    hosts = word.substr(0, colon);
  }
  if (const size_t open = AddressBracket(hosts); open != hosts.npos) {
    if (!hosts.ends_with(']')) return Wrong(StrCat(Quoted(word), " has text behind the address"));
    line->names = {StrCat(hosts.substr(0, open), hosts.substr(open + 1, hosts.size() - open - 2))};
  } else if (std::count(hosts.begin(), hosts.end(), ':') > 1 && hosts.find('[') == hosts.npos) {
    line->names = {std::string(hosts)};
  } else {
    OC_TRY(names, ExpandHostList(hosts));
    line->names = std::move(names);
  }
  if (line->names.empty()) return Wrong(StrCat(Quoted(word), " names no host"));
  for (const std::string& name : line->names) {
    const std::string problem = HostNameProblem(name);
    if (!problem.empty()) return Wrong(StrCat("host ", Quoted(name), ": ", problem));
  }
  return {};
}

Result<void> ParseSetting(std::string_view key, std::string_view value, Line* line) {
  if (key == "user" || key == "username") {
    if (value.empty()) return Wrong("user must not be empty");
    line->user = value;
    return {};
  }
  const bool slots = key == "slots" || key == "cpu" || key == "count";
  const bool most = key == "max_slots" || key == "max-slots";
  if (!slots && !most && key != "gpus") return Wrong(StrCat(Quoted(key), " is not known; ", kKnown));
  OC_TRY(count, ParseCount(key, value, key == "gpus" ? 0 : 1));
  if (slots && line->slots != 0) return Wrong("slots are told twice");
  (slots ? line->slots : most ? line->max_slots : line->gpus) = count;
  return {};
}

std::string_view TakeUntil(std::string_view stops, std::string_view* rest) {
  const std::string_view word = rest->substr(0, rest->find_first_of(stops));
  rest->remove_prefix(word.size());
  rest->remove_prefix(std::min(rest->find_first_not_of(kSpace), rest->size()));
  return word;
}

Result<void> ParseSettings(std::string_view rest, Line* line) {
  while (!rest.empty()) {
    const std::string_view key = TakeUntil("= \t\r\v\f", &rest);
    if (!rest.starts_with('=')) return Wrong(StrCat(Quoted(key), " is no setting; ", kKnown));
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
    OC_TRY_VOID(ParseSetting(key, TakeUntil(kSpace, &rest), line));
  }
  return {};
}

Result<void> ApplyUser(Line* line) {
  if (line->user.empty()) return {};
  for (std::string& name : line->names) {
    if (name.find('@') != name.npos) return Wrong(StrCat("host ", Quoted(name), ": the user is told twice"));
    name = StrCat(line->user, "@", name);
    const std::string problem = HostNameProblem(name);
    if (!problem.empty()) return Wrong(StrCat("host ", Quoted(name), ": ", problem));
  }
  return {};
}

// `text` has no comment and is not empty.
Result<Line> ParseLine(std::string_view text) {
  Line line;
  OC_TRY_VOID(ParseHosts(TakeUntil(kSpace, &text), &line));
  OC_TRY_VOID(ParseSettings(text, &line));
  OC_TRY_VOID(ApplyUser(&line));
  if (line.max_slots != 0 && line.slots > line.max_slots) {
    return Wrong(StrCat("slots=", line.slots, " is more than max_slots=", line.max_slots));
  }
  if (line.slots == 0) line.slots = line.max_slots;
  return line;
}

Result<void> AddLine(const Line& line, HostTable* table) {
  for (const std::string& name : line.names) {
    const auto [host, first] = table->Add(name);
    host->slots = first ? line.slots : std::max(host->slots, 1) + std::max(line.slots, 1);
    if (host->slots > kMaxSlots) return Wrong(StrCat("host ", Quoted(name), " has too many slots"));
    if (line.gpus >= 0) host->gpus = line.gpus;
  }
  return {};
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return Trim(line.substr(0, line.find('#')));
}

// Adds one line; the number of hosts in it.
Result<size_t> ParseAndAdd(std::string_view text, HostTable* table) {
  OC_TRY(line, ParseLine(text));
  OC_TRY_VOID(AddLine(line, table));
  return line.names.size();
}

Result<std::string> ReadAll(int fd, const std::string& path) {
  std::string text;
  char buffer[65536];
  while (text.size() <= kMaxBytes) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLIN, 0};
      if (poll(&wait, 1, kPipeMs) == 0)
        return Wrong(StrCat("host file '", path, "': nothing comes out of it"));
    } else if (errno != EINTR) {
      return Wrong(StrCat("host file '", path, "': ", strerror(errno)));
    }
  }
  return Wrong(StrCat("host file '", path, "': more than ", kMaxBytes, " bytes"));
}

}  // namespace

Result<std::vector<AllocatedHost>> ParseHostFile(std::string_view text, std::string_view file_name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  HostTable table;
  size_t hosts = 0;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(&text);
    if (line.empty()) continue;
    const auto added = ParseAndAdd(line, &table);
    if (!added) return Wrong(StrCat(file_name, ":", number, ": ", added.error().message));
    hosts += *added;
    if (hosts > kMaxHosts) return Wrong(StrCat(file_name, ":", number, ": more than ", kMaxHosts, " hosts"));
  }
  if (table.Size() == 0) return Wrong(StrCat("host file '", file_name, "' names no host"));
  return table.Take();
}

Result<std::vector<AllocatedHost>> ReadHostFile(const std::string& path) {
  // Not to be stuck in open() with a pipe that nobody writes to.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Wrong(StrCat("host file '", path, "': ", strerror(errno)));
  OC_TRY(text, ReadAll(file.Get(), path));
  return ParseHostFile(text, path);
}

}  // namespace overcap
