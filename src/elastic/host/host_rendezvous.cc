// SPDX-License-Identifier: Apache-2.0
#include "elastic/host/host_rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "elastic/listen.h"
#include "model/json_fields.h"
#include "net/tcp.h"
#include "sys/posix_files.h"

namespace overcap::elastic {
namespace {

constexpr int kResolveMs = 5000;
constexpr int64_t kFirstWaitUs = 10'000;
constexpr int64_t kLongestWaitUs = 500'000;

}  // namespace

Result<std::unique_ptr<HostRendezvous>> HostRendezvous::Make(const RendezvousPlace& place,
                                                             HostRendezvousOptions options,
                                                             const Clock& clock, Random* random) {
  std::unique_ptr<HostRendezvous> made(new HostRendezvous(place, std::move(options), clock, random));
  OC_TRY_VOID(PosixFiles().MakeFolders(made->options_.folder));
  if (place.kind == RendezvousPlace::Kind::kAuto) return made;
  OC_TRY(addresses, AddressesOf(place.endpoints[0].first, kResolveMs));
  for (const std::string& address : addresses) {
    if (made->own_address_.empty() && IsOwnAddress(address)) made->own_address_ = address;
  }
  made->addresses_ = std::move(addresses);
  // Many a host has its own name at a loopback address, where nobody else would find it.
  const bool by_name =
      made->own_address_ != place.endpoints[0].first && place.endpoints[0].first != "localhost";
  const std::vector<std::string> others = OwnAddresses();
  if (place.here && !*place.here) made->own_address_.clear();
  if (place.here && *place.here && made->own_address_.empty())
    made->own_address_ = others.empty() ? "127.0.0.1" : others[0];
  if (by_name && IsLoopback(made->own_address_) && !others.empty()) {
    made->own_address_ = others[0];
    made->addresses_ = {others[0]};
  }
  return made;
}

std::string HostRendezvous::PathOf(std::string_view ending) const {
  return StrCat(options_.folder, "/", place_.id, ".", ending);
}

Result<ElasticRecord> HostRendezvous::ReadRecord() const {
  const auto text = PosixFiles().Read(PathOf("json"));
  if (!text && text.error().code == ErrorCode::kNotFound) return ElasticRecord{};
  if (!text) return Fail(text.error());
  auto record = ParseRecord(*text);
  if (!record) return Fail(ErrorCode::kCorrupt, StrCat("'", PathOf("json"), "': ", record.error().message));
  return record;
}

int64_t HostRendezvous::Prepare(std::vector<pollfd>*) {
  return standing_.kind == Standing::Kind::kSeeking || kept_ ? next_us_ : kNever;
}

Result<void> HostRendezvous::Act() {
  if (standing_.kind != Standing::Kind::kSeeking || clock_.MonotonicUs() < next_us_) return {};
  return place_.kind == RendezvousPlace::Kind::kAuto ? TryLock() : TryPort();
}

void HostRendezvous::Later() {
  back_off_us_ = std::clamp(back_off_us_ * 2, kFirstWaitUs, kLongestWaitUs);
  next_us_ = clock_.MonotonicUs() + back_off_us_;
}

// False when another agent of this job has it.
Result<bool> HostRendezvous::HoldLock() {
  if (lock_) return true;
  Fd lock(open(PathOf("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return Fail(ErrnoError(errno, StrCat("cannot open '", PathOf("lock"), "'")));
  if (flock(lock.Get(), LOCK_EX | LOCK_NB) != 0) return false;
  lock_ = std::move(lock);
  return true;
}

Result<void> HostRendezvous::TryLock() {
  OC_TRY(held, HoldLock());
  if (!held) return FollowContact();
  OC_TRY(listener, ListenAt("127.0.0.1", 0));
  listener_ = std::move(listener);
  LeaderContact contact{options_.agent, {"127.0.0.1"}, PortOf(listener_), LinkKey::Make(random_)};
  JsonWriter json;
  json.BeginObject().Field("agent", contact.agent).Field("port", contact.port);
  json.Field("key", contact.key.Hex()).EndObject();
  OC_TRY_VOID(PosixFiles().WriteAtomic(PathOf("contact"), json.Text(), false));
  standing_.leader = std::move(contact);
  return Lead();
}

Result<void> HostRendezvous::FollowContact() {
  const auto text = PosixFiles().Read(PathOf("contact"));
  const auto json = text ? ParseJsonObject(*text, "contact") : Result<nlohmann::json>(Fail(text.error()));
  LeaderContact contact;
  contact.addresses = {"127.0.0.1"};
  std::string key;
  if (json) {
    FieldReader reader(*json, "contact");
    reader.Read("agent", &contact.agent);
    reader.Read("port", &contact.port);
    reader.Read("key", &key);
  }
  const auto parsed = LinkKey::FromHex(key);
  if (!parsed || contact.port < 1 || contact.port > 65535) {  // it is being written
    Later();
    return {};
  }
  contact.key = *parsed;
  standing_.leader = std::move(contact);
  standing_.kind = Standing::Kind::kFollows;
  return {};
}

// The first is nearly always the one: it is looked at every other time.
int HostRendezvous::PortToTry() const {
  const size_t more = place_.endpoints.size() - 1;
  const size_t at = more == 0 || looks_ % 2 == 0 ? 0 : 1 + looks_ / 2 % more;
  return place_.endpoints[at].second;
}

Result<void> HostRendezvous::TryPort() {
  standing_.leader = {options_.agent, addresses_, PortToTry(), {}};
  const auto digest = HmacSha256(options_.secret, StrCat("overcap elastic ", place_.id));
  standing_.leader.key.bytes.assign(reinterpret_cast<const char*>(digest.data()), digest.size());
  if (own_address_.empty()) {
    FollowPort();
    return {};
  }
  OC_TRY(listener, ListenAnywhere());
  if (!listener) {
    FollowPort();
    return {};
  }
  listener_ = std::move(*listener);
  standing_.leader.addresses = {own_address_};
  standing_.leader.port = PortOf(listener_);
  return Lead();
}

// Of several ports two agents of this host could each take one and both lead: the lock says which may.
Result<std::optional<Fd>> HostRendezvous::ListenAnywhere() {
  if (place_.endpoints.size() > 1) {
    OC_TRY(held, HoldLock());
    if (!held) return std::optional<Fd>();
  }
  for (const auto& [host, port] : place_.endpoints) {
    auto listener = ListenAt(own_address_, port);
    if (listener) return std::optional<Fd>(std::move(*listener));
    if (listener.error().code != ErrorCode::kConflict) return Fail(listener.error());
    trouble_ = StrCat(listener.error().message, ", and no agent of this job answers there");
  }
  return std::optional<Fd>();
}

void HostRendezvous::FollowPort() {
  standing_.leader.agent.clear();
  standing_.kind = Standing::Kind::kFollows;
}

// What an earlier leader's members may still have ends within the TTL.
Result<void> HostRendezvous::Lead() {
  OC_TRY(record, ReadRecord());
  const bool other = other_ && record == *other_;  // nothing is left of a job that has ended
  if (other) record = record.Anew();
  standing_.record = std::move(record);
  if (standing_.record.ended) {
    listener_.Reset();
    lock_.Reset();
    standing_.kind = Standing::Kind::kFinished;
    return {};
  }
  const bool ran = standing_.record.epoch > 0 && !other;
  standing_.quiet_us = ran ? clock_.MonotonicUs() + options_.times.Silence() : 0;
  standing_.term = standing_.record.term + 1;
  standing_.right_until_us = kNever;
  standing_.kind = Standing::Kind::kLeads;
  return {};
}

void HostRendezvous::Keep(const ElasticRecord& record) {
  if (standing_.kind != Standing::Kind::kLeads) return;
  const auto kept = PosixFiles().WriteAtomic(PathOf("json"), RecordJson(record), false);
  if (kept) {
    kept_ = record;
    next_us_ = 0;
  } else {
    trouble_ = kept.error().message;
  }
}

std::optional<ElasticRecord> HostRendezvous::TakeKept() {
  return std::exchange(kept_, std::nullopt);
}

void HostRendezvous::LookAgain() {
  if (standing_.kind != Standing::Kind::kFollows) return;
  standing_.kind = Standing::Kind::kSeeking;
  ++looks_;
  Later();
  const auto record = ReadRecord();
  if (other_ && record && *record == *other_) return;
  if (record && record->ended && (place_.kind == RendezvousPlace::Kind::kAuto || !own_address_.empty())) {
    standing_.record = *record;
    standing_.kind = Standing::Kind::kFinished;
  }
}

void HostRendezvous::StartOver() {
  if (standing_.kind != Standing::Kind::kFinished) return;
  other_ = standing_.record;
  standing_ = {};
  next_us_ = 0;
}

void HostRendezvous::Leave() {
  if (standing_.kind != Standing::Kind::kLeads) return;
  listener_.Reset();
  if (place_.kind == RendezvousPlace::Kind::kTcp) lock_.Reset();
  if (place_.kind == RendezvousPlace::Kind::kAuto) {
    // By name while we hold the lock: nobody else can have written them.
    (void)PosixFiles().Remove(PathOf("contact"));
    if (place_.id.starts_with(options_.agent)) {
      (void)PosixFiles().Remove(PathOf("json"));
      (void)PosixFiles().Remove(PathOf("lock"));
    }
    lock_.Reset();
  }
  standing_ = {};
  next_us_ = clock_.MonotonicUs() + kLongestWaitUs;
}

}  // namespace overcap::elastic
