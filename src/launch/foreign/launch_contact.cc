// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launch_contact.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kVersion = "1";
constexpr size_t kFields = 8;

// No field is empty and none holds a blank.
std::string OrDash(const std::string& word) {
  return word.empty() ? "-" : word;
}

std::string FromDash(const std::string& word) {
  return word == "-" ? "" : word;
}

bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return isalnum(c) || c == '-'; });
}

}  // namespace

std::string EncodeContact(const LaunchContact& c) {
  return StrCat(kVersion, " ", c.id, " ", c.port, " ", OrDash(Join(c.addresses, ",")), " ",
                OrDash(c.head_host), " ", OrDash(c.master_addr), " ", c.master_port, " ", c.grace_us);
}

Result<LaunchContact> ParseContact(std::string_view text) {
  const auto bad = [] {
    return Fail(ErrorCode::kCorrupt, StrCat("variable '", kContactVariable, "' cannot be read"));
  };
  const std::vector<std::string> words = Split(text, ' ');
  if (words.size() != kFields || words[0] != kVersion || !IsId(words[1])) return bad();
  const auto port = ParseInt(words[2]), master_port = ParseInt(words[6]), grace = ParseInt(words[7]);
  const auto is_port = [](const auto& number) { return number && *number >= 0 && *number <= 65535; };
  if (!is_port(port) || !is_port(master_port) || !grace || *grace < 0) return bad();
  LaunchContact contact;
  contact.id = words[1];
  contact.port = static_cast<int>(*port);
  if (words[3] != "-") contact.addresses = Split(words[3], ',');
  contact.head_host = FromDash(words[4]);
  contact.master_addr = FromDash(words[5]);
  contact.master_port = static_cast<int>(*master_port);
  contact.grace_us = *grace;
  return contact;
}

std::string LaunchTag(const LaunchContact& contact, std::string_view host) {
  return StrCat(contact.id, "@", host);
}

}  // namespace overcap
