// SPDX-License-Identifier: Apache-2.0
// How an agent finds its leader, follows it, and leads when it falls to it.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "control/elastic/elastic_agent.h"
#include "elastic/host/rendezvous_key.h"

namespace overcap {

using elastic::kNever;
using elastic::Standing;

namespace {

constexpr int64_t kConnectUs = 3'000'000;
constexpr int64_t kDeniedUs = 6'000'000;  // a leader whose job has ended lingers for half of it
constexpr int64_t kLookUs = 50'000;
constexpr int64_t kLookOfEachUs = 1'000;

// All of a group look at the same time: the more there are, the less often.
int64_t LookPause(int nodes) {
  return kLookUs + kLookOfEachUs * nodes;
}

}  // namespace

elastic::JoinRequest ElasticAgent::Join() const {
  elastic::JoinRequest join;
  join.version = elastic::ElasticVersion();
  join.agent = parts_.name;
  join.host = parts_.host;
  join.address = !parts_.options.local_addr.empty() ? parts_.options.local_addr : link_.address();
  join.ranks = parts_.options.ranks;
  join.node_rank = parts_.options.node_rank;
  join.terms = terms_;
  return join;
}

void ElasticAgent::FollowStanding() {
  const Standing& standing = parts_.rendezvous.standing();
  switch (standing.kind) {
    case Standing::Kind::kSeeking:
      if (leader_) StepDown();
      return;
    case Standing::Kind::kLeads:
      if (leader_ && leader_->term() != standing.term) StepDown();
      if (!leader_) BeginLeading(standing);
      if (leader_) leader_->OnRight(standing.right_until_us);
      return;
    case Standing::Kind::kFollows:
      if (leader_) StepDown();
      if (link_.state() == elastic::MemberLink::State::kIdle ||
          (Looks() && link_.leader().key.bytes != standing.leader.key.bytes)) {
        BeginLink(standing.leader);
      }
      return;
    case Standing::Kind::kFinished:
      if (end_ || error_) return;
      if (!ever_joined_ && parts_.options.place.again) return parts_.rendezvous.StartOver();
      if (!ever_joined_) {
        return Stop(StrCat("job '", parts_.options.place.id, "' has already ended with status ",
                           standing.record.ended->status),
                    ErrorCode::kConflict, "give the new job another id");
      }
      end_ = elastic::OrderEnd{standing.record.ended->status, standing.record.ended->message, ""};
      stop_ = true;
  }
}

void ElasticAgent::BeginLeading(const Standing& standing) {
  elastic::ElasticRecord record = standing.record;
  const bool other = !record.terms.empty() && record.terms != elastic::TermsHash(terms_);
  if (other && parts_.options.place.again) {
    record = record.Anew();
  } else if (other) {
    return Stop(StrCat("job '", parts_.options.place.id, "' was begun with another command or other flags"),
                ErrorCode::kConflict, "give the new job another id");
  }
  auto hub = elastic::Hub::Make(parts_.rendezvous.Listener(), standing.leader.key, parts_.world.clock,
                                &parts_.world.random);
  if (!hub) return Stop(hub.error().message, hub.error().code);
  hub_ = std::move(*hub);
  leader_.emplace(Config(), record, standing.term, standing.quiet_us, NowUs());
  const ElasticOptions& options = parts_.options;
  if (!options.key_file.empty() && options.max_nodes > 1 && records_.empty()) {
    parts_.voice.Say(StrCat("a node that does not see this home needs the group's key: ",
                            elastic::KeyLine(parts_.host, options.key_file)));
  }
  NoteForGroup("leads", [&](JsonWriter* json) { json->Field("term", standing.term); });
  if (member_.Connected()) member_.OnClosed();
  link_.Begin(standing.leader, kConnectUs);
}

void ElasticAgent::StepDown() {
  leader_.reset();
  hub_.reset();
  link_.Close();
  member_.OnClosed();
  alone_since_us_ = NowUs();
}

void ElasticAgent::PumpLeader() {
  if (!leader_) return;
  hub_->Act(&*leader_);
  leader_->OnTime(NowUs());
  if (const auto record = leader_->TakeStore()) parts_.rendezvous.Keep(*record);
  if (const auto kept = parts_.rendezvous.TakeKept()) {
    leader_->OnStored(*kept, NowUs());
    leader_->OnTime(NowUs());
  }
  hub_->Send(&*leader_);
}

void ElasticAgent::BeginLink(const elastic::LeaderContact& leader) {
  link_.Begin(leader, kConnectUs);
  look_us_ = NowUs() + LookPause(parts_.options.max_nodes);
}

// A host that is gone refuses nobody: while it is tried etcd may give the lease to another.
bool ElasticAgent::Looks() const {
  return !leader_ && link_.state() == elastic::MemberLink::State::kConnecting &&
         parts_.options.place.kind == elastic::RendezvousPlace::Kind::kEtcd;
}

void ElasticAgent::PumpLink() {
  if (Looks() && NowUs() >= look_us_) {
    look_us_ = NowUs() + LookPause(parts_.options.max_nodes);
    parts_.rendezvous.LookAgain();
  }
  const std::vector<elastic::ToMember> got = link_.Act();
  if (link_.TakeOpened()) Opened();
  if (!got.empty()) heard_us_ = NowUs();
  for (const elastic::ToMember& message : got) Obey(message);
  // A cable that was pulled closes no connection.
  const bool deaf = member_.Connected() && NowUs() >= heard_us_ + times_.Silence();
  if (link_.state() != elastic::MemberLink::State::kFailed && !deaf) return;
  last_problem_ = deaf ? "the leader has fallen silent" : link_.Problem();
  CheckDenial();
  if (member_.Connected()) alone_since_us_ = NowUs();
  member_.OnClosed();
  link_.Close();
  if (leader_ && parts_.rendezvous.standing().kind == Standing::Kind::kLeads) {
    link_.Begin(parts_.rendezvous.standing().leader, kConnectUs);
  } else {
    parts_.rendezvous.LookAgain();
  }
}

void ElasticAgent::Opened() {
  denied_since_us_ = kNever;
  heard_us_ = NowUs();
  link_.Send(Join());
  member_.OnConnected(NowUs());
}

void ElasticAgent::Obey(const elastic::ToMember& message) {
  if (const auto* refusal = std::get_if<elastic::Refusal>(&message)) {
    return Stop(refusal->message, refusal->code);
  }
  const bool first = !std::exchange(ever_joined_, true);
  if (const auto* answer = std::get_if<elastic::LeaderAnswer>(&message)) {
    if (first || answer->term != member_.term()) {
      events_.Add("joined", [&](JsonWriter* json) {
        json->Field("term", answer->term).Field("leads", leader_.has_value());
      });
    }
    if (const auto* stop = std::get_if<elastic::OrderStop>(&answer->order)) stop_why_ = stop->why;
    member_.OnAnswer(*answer, NowUs());
  } else if (const auto* nod = std::get_if<elastic::LeaderNod>(&message)) {
    member_.OnNod(*nod, NowUs());
  }
}

// A job's place may have belonged to another job a moment ago; one port of several may belong to any program.
void ElasticAgent::CheckDenial() {
  if (!link_.Denied()) return;
  denied_since_us_ = std::min(denied_since_us_, NowUs());
  const ElasticOptions& options = parts_.options;
  if (NowUs() - denied_since_us_ < kDeniedUs || ever_joined_ || leader_ ||
      options.place.endpoints.size() != 1)
    return;
  const std::string file =
      options.key_file.empty() ? StrCat("<root>/elastic/", options.place.id, ".key") : options.key_file;
  Stop(StrCat("what answers at '", options.place.Text(), "' is another job, or has another key"),
       ErrorCode::kDenied,
       StrCat("if it is this job: ", elastic::KeyLine(options.place.endpoints[0].first, file),
              "; or --rdzv-open on all nodes"));
}

// Nobody waits for ever for who will not come.
void ElasticAgent::CheckReach() {
  if (error_ || end_ || member_.Connected() || member_.Running()) {
    trouble_since_us_ = kNever;
    return;
  }
  const int64_t now_us = NowUs();
  const std::string trouble = parts_.rendezvous.Trouble();
  if (trouble.empty()) {
    trouble_since_us_ = kNever;
  } else if (trouble_since_us_ == kNever) {
    trouble_since_us_ = now_us;
  }
  const int64_t wait_us = parts_.options.join_timeout_us;
  const bool never_reached = !ever_joined_ && trouble_since_us_ != kNever &&
                             now_us - trouble_since_us_ >= std::min(kTroubleUs, wait_us);
  if (!never_reached && now_us < elastic::After(alone_since_us_, wait_us)) return;
  const std::string why = !trouble.empty() ? trouble : last_problem_;
  Stop(StrCat("no leader of job '", parts_.options.place.id, "' was found at '", parts_.options.place.Text(),
              "' within ", FormatElapsed(never_reached ? std::min(kTroubleUs, wait_us) : wait_us),
              why.empty() ? "" : ": ", why),
       ErrorCode::kUnavailable);
}

}  // namespace overcap
