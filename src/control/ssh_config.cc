// SPDX-License-Identifier: Apache-2.0
#include "control/ssh_config.h"

#include <algorithm>
#include <strings.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kBegin = " begin: job ", kAttempt = ", attempt ", kNode = ", node ", kEnd = " end";
constexpr std::string_view kMark = "# overcap-";

// One line with its end; moves `at` behind it.
std::string_view NextLine(std::string_view text, size_t* at) {
  const size_t end = text.find('\n', *at);
  const size_t stop = end == std::string_view::npos ? text.size() : end + 1;
  const std::string_view line = text.substr(*at, stop - *at);
  *at = stop;
  return line;
}

// "# overcap-dev begin: job ann_1_x, attempt 2, node n3; ..."
bool ReadBegin(std::string_view line, SshEntry* entry) {
  line = Trim(line);
  if (!line.starts_with(kMark)) return false;
  line.remove_prefix(kMark.size());
  const size_t begin = line.find(kBegin), attempt = line.find(kAttempt);
  if (begin == std::string_view::npos || attempt == std::string_view::npos || attempt < begin) return false;
  entry->name = line.substr(0, begin);
  entry->job = line.substr(begin + kBegin.size(), attempt - begin - kBegin.size());
  const std::string_view number = line.substr(attempt + kAttempt.size());
  const auto parsed = ParseInt(number.substr(0, number.find_first_not_of("0123456789")));
  entry->attempt = parsed ? static_cast<int>(*parsed) : 0;
  const size_t node = number.find(kNode);
  if (node != std::string_view::npos)
    entry->node = number.substr(node + kNode.size(), number.find(';', node) - node - kNode.size());
  return parsed.has_value();
}

struct Place {
  SshEntry entry;
  size_t begin = 0, end = 0;
};

// Where an entry ends that begins before `at`. Without its end mark (somebody edited the file) it is the
// Host line and what is indented below it.
size_t EndOfEntry(std::string_view text, size_t at, std::string_view name) {
  const std::string end_mark = StrCat(kMark, name, kEnd), host = "Host " + SshHostName(name);
  SshEntry unused;
  for (size_t look = at; look < text.size();) {
    const std::string_view line = NextLine(text, &look);
    if (Trim(line) == end_mark) return look;
    if (ReadBegin(line, &unused)) break;
  }
  while (at < text.size()) {
    size_t next = at;
    const std::string_view line = NextLine(text, &next);
    const bool ours = line.starts_with("  ") || Trim(line) == host;
    if (!ours) break;
    at = next;
  }
  return at;
}

std::vector<Place> Places(std::string_view text) {
  std::vector<Place> places;
  for (size_t at = 0; at < text.size();) {
    Place place;
    place.begin = at;
    const std::string_view line = NextLine(text, &at);
    if (!ReadBegin(line, &place.entry)) continue;
    place.end = at = EndOfEntry(text, at, place.entry.name);
    places.push_back(std::move(place));
  }
  return places;
}

// '%' begins one of ssh's tokens; "${" cannot be written at all, nor can a quote or a control character.
Result<std::string> Value(std::string_view path) {
  const bool odd = std::any_of(path.begin(), path.end(),
                               [](unsigned char c) { return c < ' ' || c == 0x7F || c == '"' || c == '\\'; });
  if (odd || path.find("${") != std::string_view::npos) {
    return Fail(ErrorCode::kUsage, StrCat("path ", Quoted(path), " cannot be written in ssh's configuration"),
                "keep overcap's folder and binary under a plain path");
  }
  std::string text;
  for (const char c : path) text.append(c == '%' ? 2 : 1, c);
  return text.find(' ') == std::string::npos ? text : StrCat('"', text, '"');
}

Result<std::string> ProxyText(const std::vector<std::string>& proxy) {
  for (const std::string& word : proxy) {
    if (std::none_of(word.begin(), word.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }))
      continue;
    return Fail(ErrorCode::kUsage, StrCat("path ", Quoted(word), " cannot be written in ssh's configuration"),
                "keep overcap's folder and binary under a plain path");
  }
  std::string text;
  for (const char c : ShellJoin(proxy)) text.append(c == '%' ? 2 : 1, c);
  return text;
}

// The first word of a line of configuration and the rest; ssh allows "Key=value" and quotes.
std::pair<std::string_view, std::string_view> KeyOf(std::string_view line) {
  line = Trim(line);
  const size_t end = std::min(line.find_first_of(" \t="), line.size());
  std::string_view rest = line.substr(end);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t="), rest.size()));
  return {line.substr(0, end), rest};
}

bool IsKey(std::string_view word, std::string_view key) {
  return word.size() == key.size() && strncasecmp(word.data(), key.data(), key.size()) == 0;
}

bool Names(std::string_view words, std::string_view path) {
  const auto named = SplitWords(words);
  return named && std::find(named->begin(), named->end(), path) != named->end();
}

}  // namespace

std::string SshHostName(std::string_view allocation) {
  return StrCat("overcap-", allocation);
}

Result<std::string> SshHostEntry(const SshHost& host) {
  const std::string ssh_name = SshHostName(host.name);
  std::string text = StrCat("# ", ssh_name, kBegin, host.job, kAttempt, host.attempt, kNode, host.node,
                            "; kept by overcap, goes with the allocation\n", "Host ", ssh_name, "\n");
  const auto add = [&](std::string_view key, std::string_view value) {
    text += StrCat("  ", key, " ", value, "\n");
  };
  add("HostName", host.node);
  add("User", host.user);
  if (host.proxy.empty()) {
    if (!host.jump.empty()) add("ProxyJump", host.jump);
  } else {
    OC_TRY(proxy, ProxyText(host.proxy));
    OC_TRY(key, Value(host.key));
    OC_TRY(known_hosts, Value(host.known_hosts));
    add("ProxyCommand", proxy);
    add("IdentityFile", key);
    add("IdentitiesOnly", "yes");
    add("UserKnownHostsFile", known_hosts);
    add("GlobalKnownHostsFile", "/dev/null");
    add("HostKeyAlias", ssh_name);
    add("StrictHostKeyChecking", "yes");
    add("CheckHostIP", "no");
    add("PreferredAuthentications", "publickey");
  }
  add("ServerAliveInterval", "30");
  return text + StrCat("# ", ssh_name, kEnd, "\n");
}

std::vector<SshEntry> SshEntries(std::string_view text) {
  std::vector<SshEntry> entries;
  for (Place& place : Places(text)) entries.push_back(std::move(place.entry));
  return entries;
}

std::string WithoutSshEntry(std::string_view text, std::string_view name) {
  std::string rest;
  size_t from = 0;
  for (const Place& place : Places(text)) {
    if (place.entry.name != name) continue;
    rest += text.substr(from, place.begin - from);
    from = place.end;
  }
  return rest.append(text.substr(from));
}

std::string WithSshEntry(std::string_view text, std::string_view name, std::string_view entry) {
  for (const Place& place : Places(text)) {
    if (place.entry.name != name) continue;
    // A second one of that name would never count: the first that ssh finds does.
    return StrCat(text.substr(0, place.begin), entry, WithoutSshEntry(text.substr(place.end), name));
  }
  const bool open_line = !text.empty() && text.back() != '\n';
  return StrCat(text, open_line ? "\n" : "", entry);
}

bool HasSshInclude(std::string_view text, std::string_view path) {
  for (size_t at = 0; at < text.size();) {
    const auto [key, rest] = KeyOf(NextLine(text, &at));
    if (IsKey(key, "Host") || IsKey(key, "Match")) return false;
    if (IsKey(key, "Include") && Names(rest, path)) return true;
  }
  return false;
}

std::string WithSshInclude(std::string_view text, std::string_view path) {
  if (HasSshInclude(text, path)) return std::string(text);
  const size_t first = text.find('\n');
  const std::string_view end =
      first != std::string_view::npos && first > 0 && text[first - 1] == '\r' ? "\r\n" : "\n";
  std::string_view start = text.starts_with("\xEF\xBB\xBF") ? text.substr(0, 3) : "";
  return StrCat(start, "# Allocations of overcap; the line must stand before the first Host.", end,
                "Include ", path, end, text.size() > start.size() ? end : "", text.substr(start.size()));
}

}  // namespace overcap
