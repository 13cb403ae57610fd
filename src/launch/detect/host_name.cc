// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/host_name.h"

#include <algorithm>
#include <arpa/inet.h>

#include "base/text.h"

namespace overcap {
namespace {

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool EqualWhateverCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

bool IsAddress(std::string_view name) {
  return name.find(':') != name.npos || name.find_first_not_of("0123456789.") == name.npos;
}

std::string_view WithoutLastDot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

// Of the part before or behind the '@'.
std::string PartProblem(std::string_view part, std::string_view what, std::string_view allowed) {
  if (part.empty()) return StrCat("a ", what, " name is empty");
  if (part.front() == '-') return StrCat("a ", what, " name cannot begin with '-'");
  const auto bad = std::find_if(part.begin(), part.end(),
                                [&](char c) { return !IsAlnum(c) && allowed.find(c) == allowed.npos; });
  if (bad == part.end()) return "";
  const bool printable = *bad > ' ' && *bad < 0x7f;
  return StrCat("a ", what, " name cannot hold ", printable ? StrCat("'", *bad, "'") : "such bytes");
}

}  // namespace

bool SameHost(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return false;
  if (IsAddress(a) || IsAddress(b)) return EqualWhateverCase(a, b);
  a = WithoutLastDot(a);
  b = WithoutLastDot(b);
  const size_t a_dot = a.find('.'), b_dot = b.find('.');
  if (a_dot != a.npos && b_dot != b.npos) return EqualWhateverCase(a, b);
  return EqualWhateverCase(a.substr(0, a_dot), b.substr(0, b_dot));
}

bool IsHostItself(std::string_view name, std::string_view this_host) {
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || SameHost(name, this_host);
}

bool IsIpv6(std::string_view text) {
  const size_t zone = text.find('%');
  if (zone != text.npos && zone + 1 == text.size()) return false;
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) == 1;
}

std::string HostNameProblem(std::string_view name) {
  const size_t at = name.rfind('@');
  if (at != name.npos) {
    if (std::string problem = PartProblem(name.substr(0, at), "user", "._-+"); !problem.empty())
      return problem;
    name.remove_prefix(at + 1);
  }
  if (name.find(':') != name.npos && !IsIpv6(name)) return "it is no IPv6 address";
  return PartProblem(name, "host", name.find(':') != name.npos ? "._-:%" : "._-");
}

HostTable::Added HostTable::Add(std::string_view name) {
  const auto [place, first] = places_.try_emplace(std::string(name), hosts_.size());
  if (first) hosts_.push_back({.name = std::string(name)});
  return {&hosts_[place->second], first};
}

}  // namespace overcap
