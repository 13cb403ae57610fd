// SPDX-License-Identifier: Apache-2.0
#include "elastic/etcd/etcd_rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "elastic/listen.h"
#include "model/json_fields.h"
#include "net/tcp.h"

namespace overcap::elastic {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kCandidateUs = 30'000;  // at random before a lease is asked for: others may be first
constexpr int64_t kFirstWaitUs = 20'000;
constexpr int64_t kLongestWaitUs = 500'000;
constexpr int64_t kLeaveUs = kSecond;
constexpr int64_t kAgainUs = 20'000;  // after a call that failed

std::string ContactJson(const LeaderContact& contact) {
  JsonWriter json;
  json.BeginObject().Field("agent", contact.agent).Field("addresses", contact.addresses);
  return json.Field("port", contact.port).Field("key", contact.key.Hex()).EndObject().Take();
}

std::optional<LeaderContact> ParseContact(const std::string& text) {
  const auto json = ParseJsonObject(text, "leader in etcd");
  if (!json) return std::nullopt;
  LeaderContact contact;
  std::string key;
  FieldReader reader(*json, "leader in etcd");
  reader.Read("agent", &contact.agent);
  reader.Read("addresses", &contact.addresses);
  reader.Read("port", &contact.port);
  reader.Read("key", &key);
  const auto parsed = LinkKey::FromHex(key);
  if (!reader.Check() || !parsed || contact.port < 1 || contact.port > 65535) return std::nullopt;
  contact.key = *parsed;
  return contact;
}

}  // namespace

EtcdRendezvous::EtcdRendezvous(const RendezvousPlace& place, EtcdRendezvousOptions options,
                               const Clock& clock, uint64_t seed)
    : options_(std::move(options)),
      clock_(clock),
      leader_key_(StrCat("overcap/elastic/", place.id, "/leader")),
      record_key_(StrCat("overcap/elastic/", place.id, "/record")),
      client_(options_.etcd, clock),
      random_(seed) {}

Result<std::unique_ptr<EtcdRendezvous>> EtcdRendezvous::Make(const RendezvousPlace& place,
                                                             EtcdRendezvousOptions options,
                                                             const Clock& clock, uint64_t seed) {
  options.etcd.call_us =
      std::min<int64_t>(options.etcd.call_us, std::max<int64_t>(200'000, options.times.ttl / 5));
  std::unique_ptr<EtcdRendezvous> made(new EtcdRendezvous(place, std::move(options), clock, seed));
  OC_TRY(listener, ListenTcp());
  made->listener_ = std::move(listener.fd);
  KernelRandom random;
  made->contact_ = {made->options_.agent, OwnAddresses(), listener.port, LinkKey::Make(random)};
  if (!made->options_.address.empty()) made->contact_.addresses = {made->options_.address};
  if (made->contact_.addresses.empty()) made->contact_.addresses = {"127.0.0.1"};
  made->own_value_ = ContactJson(made->contact_);
  made->wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_) return Fail(ErrnoError(errno, "cannot make an eventfd"));
  // Signals are for the thread that runs the ranks.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  made->thread_ = std::thread([rendezvous = made.get()] { rendezvous->Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

EtcdRendezvous::~EtcdRendezvous() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  asked_.notify_all();
  if (thread_.joinable()) thread_.join();
}

int64_t EtcdRendezvous::Prepare(std::vector<pollfd>* fds) {
  fds->push_back({wake_.Get(), POLLIN, 0});
  return kNever;
}

Result<void> EtcdRendezvous::Act() {
  uint64_t count = 0;
  if (read(wake_.Get(), &count, sizeof count) < 0 && errno != EAGAIN) return {};
  const std::lock_guard lock(mutex_);
  if (fatal_) return Fail(*fatal_);
  if (told_) standing_ = std::move(*told_);
  told_.reset();
  trouble_ = told_trouble_;
  if (told_kept_) kept_ = std::move(told_kept_);
  told_kept_.reset();
  return {};
}

void EtcdRendezvous::Keep(const ElasticRecord& record) {
  {
    const std::lock_guard lock(mutex_);
    to_keep_ = record;
  }
  asked_.notify_all();
}

std::optional<ElasticRecord> EtcdRendezvous::TakeKept() {
  return std::exchange(kept_, std::nullopt);
}

void EtcdRendezvous::LookAgain() {
  if (standing_.kind != Standing::Kind::kFollows) return;
  standing_.kind = Standing::Kind::kSeeking;
  {
    const std::lock_guard lock(mutex_);
    look_ = true;
  }
  asked_.notify_all();
}

void EtcdRendezvous::StartOver() {
  if (standing_.kind != Standing::Kind::kFinished) return;
  standing_ = {};
  {
    const std::lock_guard lock(mutex_);
    look_ = over_ = true;
  }
  asked_.notify_all();
}

void EtcdRendezvous::Leave() {
  std::unique_lock lock(mutex_);
  leave_ = true;
  asked_.notify_all();
  asked_.wait_for(lock, std::chrono::microseconds(kLeaveUs), [this] { return left_ || stop_; });
  standing_ = {};
}

// ---- the thread

void EtcdRendezvous::Say(const Standing& standing) {
  {
    const std::lock_guard lock(mutex_);
    told_ = standing;
    told_trouble_.clear();
  }
  const uint64_t one = 1;
  (void)!write(wake_.Get(), &one, sizeof one);
}

void EtcdRendezvous::SayTrouble(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    told_trouble_ = error.message;
    if (error.code == ErrorCode::kDenied || error.code == ErrorCode::kUsage) fatal_ = error;
  }
  const uint64_t one = 1;
  (void)!write(wake_.Get(), &one, sizeof one);
}

bool EtcdRendezvous::WaitUntil(int64_t until_us) {
  std::unique_lock lock(mutex_);
  const auto due = [this] {
    return stop_ || leave_ || look_ ||
           (to_keep_ && now_.kind == Standing::Kind::kLeads && store_again_us_ == kNever);
  };
  if (until_us == kNever) {
    asked_.wait(lock, due);
  } else {
    const int64_t wait = std::max<int64_t>(0, until_us - clock_.MonotonicUs());
    asked_.wait_for(lock, std::chrono::microseconds(wait), due);
  }
  return !stop_ && !leave_;
}

void EtcdRendezvous::Work() {
  for (;;) {
    using Kind = Standing::Kind;
    if (now_.kind == Kind::kLeads) {
      LeadOn();
    } else if (now_.kind == Kind::kSeeking) {
      Seek();
    }
    const int64_t next = now_.kind == Kind::kLeads     ? std::min(renew_us_, store_again_us_)
                         : now_.kind == Kind::kSeeking ? clock_.MonotonicUs() + back_off_us_
                                                       : kNever;
    if (!WaitUntil(next)) break;
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, false) && now_.kind == Kind::kFinished) {
      other_ = now_.record;
      now_.kind = Kind::kSeeking;
    }
    if (std::exchange(look_, false) && now_.kind == Kind::kFollows) now_.kind = Kind::kSeeking;
  }
  if (lease_ != 0) (void)client_.RevokeLease(lease_);
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
  }
  asked_.notify_all();
}

// One look; what stands in etcd decides. Those who find no leader do not all ask for a lease.
void EtcdRendezvous::Seek() {
  back_off_us_ = std::clamp(back_off_us_ * 2, kFirstWaitUs, kLongestWaitUs);
  for (const bool second : {false, true}) {
    auto found = client_.GetBoth(leader_key_, record_key_);
    if (!found) return SayTrouble(found.error());
    ElasticRecord record;
    if (found->second) {
      auto parsed = ParseRecord(found->second->value);
      if (!parsed)
        return SayTrouble(
            {ErrorCode::kUsage, StrCat("key '", record_key_, "' in etcd: ", parsed.error().message), ""});
      record = Ours(std::move(*parsed));
    }
    now_ = {};
    now_.record = record;
    if (record.ended) {
      now_.kind = Standing::Kind::kFinished;
      return Say(now_);
    }
    if (found->first) {
      const auto contact = ParseContact(found->first->value);
      if (!contact)
        return SayTrouble({ErrorCode::kUsage, StrCat("key '", leader_key_, "' in etcd holds no leader"), ""});
      now_.leader = *contact;
      now_.kind = Standing::Kind::kFollows;
      return Say(now_);
    }
    if (!second && !WaitUntil(clock_.MonotonicUs() + static_cast<int64_t>(random_.Below(kCandidateUs))))
      return;
  }
  const int64_t asked_us = clock_.MonotonicUs();
  auto lease = client_.GrantLease(std::max<int64_t>(1, options_.times.ttl / kSecond));
  if (!lease) return SayTrouble(lease.error());
  lease_ = *lease;
  auto created = client_.Create(leader_key_, own_value_, lease_);
  if (!created || !*created) {
    const int64_t unused = std::exchange(lease_, 0);
    (void)client_.RevokeLease(unused);  // a key of ours that was made all the same goes with it
    if (!created) SayTrouble(created.error());
    back_off_us_ = kFirstWaitUs;
    return;
  }
  // Another leader may have kept something between our look and our key.
  auto again = client_.GetBoth(leader_key_, record_key_);
  auto record =
      again && again->second ? ParseRecord(again->second->value) : Result<ElasticRecord>(ElasticRecord{});
  if (record) record = Ours(std::move(*record));
  if (!again || !record || record->ended) {
    (void)client_.RevokeLease(std::exchange(lease_, 0));
    return;
  }
  now_.kind = Standing::Kind::kLeads;
  now_.record = *record;
  record_revision_ = again->second ? again->second->mod_revision : 0;
  now_.term = **created;
  now_.leader = contact_;
  now_.right_until_us = asked_us + options_.times.LeaderRight();
  renew_us_ = clock_.MonotonicUs() + options_.times.Beat();
  back_off_us_ = 0;
  {
    const std::lock_guard lock(mutex_);
    to_keep_.reset();  // of an earlier term
  }
  Say(now_);
}

void EtcdRendezvous::Lose() {
  now_ = {};
  lease_ = 0;
  back_off_us_ = 0;
  Say(now_);
}

bool EtcdRendezvous::Store() {
  std::optional<ElasticRecord> record;
  {
    const std::lock_guard lock(mutex_);
    record = to_keep_;
  }
  store_again_us_ = kNever;
  if (!record) return true;
  const std::string text = RecordJson(*record);
  const auto put = client_.PutIf(record_key_, text, record_revision_, leader_key_, now_.term);
  if (!put) {  // asked for again soon: it may be there already, that does no harm
    store_again_us_ = clock_.MonotonicUs() + kAgainUs;
    SayTrouble(put.error());
    return false;
  }
  if (put->revision == 0 && (!put->guard || put->guard->create_revision != now_.term)) {
    Lose();
    return true;
  }
  record_revision_ = put->revision != 0 ? put->revision : (put->value ? put->value->mod_revision : 0);
  // An earlier try has come through after all: with this record, or with one that this follows.
  if (put->revision == 0 && (!put->value || put->value->value != text)) {
    store_again_us_ = clock_.MonotonicUs();
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    if (to_keep_ && *to_keep_ == *record) to_keep_.reset();
    told_kept_ = record;
  }
  Say(now_);
  return true;
}

void EtcdRendezvous::LeadOn() {
  const bool answers = Store();
  if (now_.kind != Standing::Kind::kLeads) return;
  const int64_t sent_us = clock_.MonotonicUs();
  if (sent_us >= now_.right_until_us) return Lose();
  if (!answers && now_.right_until_us - sent_us > options_.times.ttl / 2) {
    // What waits to be kept goes first, as long as the lease is not in danger.
    renew_us_ = std::max(renew_us_, store_again_us_);
  }
  if (sent_us < renew_us_) return;
  const auto renewed = client_.RenewLease(lease_);
  if (!renewed) {
    renew_us_ = clock_.MonotonicUs() + kAgainUs;
    return SayTrouble(renewed.error());
  }
  if (!*renewed) return Lose();
  now_.right_until_us = sent_us + options_.times.LeaderRight();
  renew_us_ = sent_us + options_.times.Beat();
  Say(now_);
}

}  // namespace overcap::elastic
