// SPDX-License-Identifier: Apache-2.0
#include "stores/lock_record.h"

#include <algorithm>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "stores/hashed_line.h"
#include "stores/object_requests.h"
#include "sys/own_host_name.h"
#include "sys/user.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kLongestName = 255, kHolderDigits = 32;
constexpr int64_t kLargestLeaseUs = 3'600'000'000;  // of a record of anybody
constexpr int64_t kYear9999Us = 253'370'764'800'000'000;

bool IsPrintable(char c) {
  return c >= '!' && c <= '~';
}

// Terminals are shown these.
std::string Printable(std::string name) {
  if (name.empty()) name = "?";
  name.resize(std::min(name.size(), kLongestName));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsPrintable(c); }, '?');
  return name;
}

class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  std::string Name(const char* name) {
    const auto it = json_.find(name);
    std::string text = it != json_.end() && it->is_string() ? it->get<std::string>() : std::string();
    Want(!text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), IsPrintable));
    return text;
  }
  std::string Holder() {
    std::string text = Name("holder");
    Want(text.size() == kHolderDigits && text.find_first_not_of("0123456789abcdef") == text.npos);
    return text;
  }
  int64_t Number(const char* name, int64_t least, int64_t most) {
    const auto it = json_.find(name);
    const bool is_number = it != json_.end() && it->is_number_integer();
    // Numbers past 2^63 are another type there.
    const bool fits = is_number && !(it->is_number_unsigned() && it->get<uint64_t>() > INT64_MAX);
    const int64_t number = fits ? it->get<int64_t>() : 0;
    Want(fits && number >= least && number <= most);
    return number;
  }
  bool Flag(const char* name) {
    const auto it = json_.find(name);
    Want(it != json_.end() && it->is_boolean());
    return right_ && it->get<bool>();
  }
  bool right() const { return right_; }

 private:
  void Want(bool right) { right_ = right_ && right; }

  const Json& json_;
  bool right_ = true;
};

}  // namespace

LockRecord OwnLockRecord(int64_t lease_us, int64_t now_us) {
  LockRecord record;
  record.held = true;
  record.holder = NewPutMark();
  record.user = Printable(UserName());
  record.host = Printable(OwnHostName());
  record.pid = getpid();
  record.since_us = now_us;
  record.lease_us = lease_us;
  return record;
}

std::string EncodeLockRecord(const LockRecord& record) {
  JsonWriter json;
  json.BeginObject()
      .Field("format", kFormat)
      .Field("held", record.held)
      .Field("holder", record.holder)
      .Field("user", record.user)
      .Field("host", record.host)
      .Field("pid", record.pid)
      .Field("since_us", record.since_us)
      .Field("lease_us", record.lease_us)
      .Field("turn", record.turn)
      .EndObject();
  return WithHashLine(json.Take());
}

Result<LockRecord> DecodeLockRecord(std::string_view bytes, std::string_view key) {
  const auto line = CheckedLine(bytes.substr(0, kLockRecordMost + 1));
  const Json json = line && bytes.size() <= kLockRecordMost ? Json::parse(*line, nullptr, false) : Json();
  Members members(json);
  LockRecord record;
  if (json.is_object()) {
    members.Number("format", kFormat, kFormat);
    record.held = members.Flag("held");
    record.holder = members.Holder();
    record.user = members.Name("user");
    record.host = members.Name("host");
    record.pid = members.Number("pid", 0, INT64_MAX);
    record.since_us = members.Number("since_us", 0, kYear9999Us);
    record.lease_us = members.Number("lease_us", 1, kLargestLeaseUs);
    record.turn = members.Number("turn", 0, INT64_MAX);
    if (members.right()) return record;
  }
  return Fail(ErrorCode::kCorrupt, StrCat("the lock ", Quoted(key, 200), " is damaged"));
}

std::string DescribeHolder(const LockRecord& record) {
  if (record.user.empty()) return "somebody who does not say who";
  return StrCat(record.user, "@", record.host, ", pid ", record.pid, ", since ",
                FormatTimeLocal(record.since_us));
}

}  // namespace overcap
