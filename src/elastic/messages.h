// SPDX-License-Identifier: Apache-2.0
// What an agent of an elastic launch and its leader say to each other: docs/formats/elastic.md, "Messages".
// Encode gives the content of one frame, Decode reads it back; kCorrupt for anything the format does not
// allow. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace overcap::elastic {

constexpr int kElasticProtocol = 1;
// Of this program: what agents compare. One string in the file, so that a test can make another version.
const char* ElasticVersion();
constexpr uint32_t kMaxElasticFrame = 1 << 20;
constexpr size_t kMostNames = 16;            // of those who joined or left, in a message
constexpr size_t kMostTraceback = 16 << 10;  // bytes of a traceback or of last lines that travel

// To the leader.
struct JoinRequest {
  int protocol = kElasticProtocol;
  std::string version, agent, host, address;  // agent: unique for this process
  int ranks = 1;
  int node_rank = -1;                                      // the place it wants; -1: any
  std::vector<std::pair<std::string, std::string>> terms;  // what all agents must have in common
  bool operator==(const JoinRequest&) const = default;
};

// The first rank of an agent that failed, or hung.
struct ElasticFailure {
  int rank = -1;
  int exit_status = 0, signal = 0;
  bool out_of_memory = false;
  std::string kind;       // "failed", "hung", "cannot_start"
  std::string message;    // one line: what went wrong, as far as the rank itself has told
  std::string traceback;  // several lines; may be empty
  bool operator==(const ElasticFailure&) const = default;
};

enum class RanksState { kIdle, kRunning, kDone };
std::string_view RanksStateName(RanksState state);

struct MemberReport {
  uint32_t seq = 0;
  int64_t sent_us = 0;  // by the member's clock
  int64_t epoch = 0;    // of the ranks it has or had last; 0: none yet
  RanksState state = RanksState::kIdle;
  int port = 0;
  bool leaving = false;
  int64_t step = -1, checkpoint = -1;  // as ranks told; -1: never
  int slowest_rank = -1;               // of those that tell their step
  int64_t slowest_step = -1;
  bool warned = false;  // in `epoch`: USR1 has come to this agent, and the whole group is to be warned
  std::optional<ElasticFailure> failure;  // in `epoch`
  bool operator==(const MemberReport&) const = default;
};

struct MemberBeat {
  uint32_t seq = 0;
  int64_t sent_us = 0;
  bool operator==(const MemberBeat&) const = default;
};
using ToLeader = std::variant<JoinRequest, MemberReport, MemberBeat>;

// To the member.
struct Refusal {
  ErrorCode code = ErrorCode::kConflict;
  std::string message;
  bool operator==(const Refusal&) const = default;
};

struct OrderWait {
  std::string waiting_for;  // for people
  bool operator==(const OrderWait&) const = default;
};

struct OrderRun {
  int64_t epoch = 0;
  int group_rank = 0, group_size = 1, first_rank = 0, world_size = 1;
  int restarts = 0;
  std::string master_addr;
  int master_port = 0;
  int64_t took_us = 0;                    // from the end of the last group, or the first join
  std::vector<std::string> joined, left;  // names of hosts, kMostNames at most
  int joined_count = 0, left_count = 0;
  std::string why;  // the last group ended; "" for the first
  int64_t steps_lost = -1;
  bool operator==(const OrderRun&) const = default;
};

struct OrderStop {
  int64_t epoch = 0;
  bool warn = false;    // the warning first, so that ranks can save
  bool stacks = false;  // keep the stack of every rank first
  std::string why;
  bool operator==(const OrderStop&) const = default;
};

struct OrderEnd {
  int status = 0;
  std::string message, traceback;
  bool operator==(const OrderEnd&) const = default;
};
using Order = std::variant<OrderWait, OrderRun, OrderStop, OrderEnd>;

struct LeaderAnswer {
  int64_t echo_us = 0;   // sent_us of the report or beat it answers
  int64_t right_us = 0;  // the member may have ranks so long from echo_us on
  int64_t term = 0;
  bool grows = false;  // somebody waits for the next checkpoint
  Order order;
  bool warned = false;  // the epoch that runs: warn your ranks, and go on
  bool operator==(const LeaderAnswer&) const = default;
};

struct LeaderNod {  // the order stands
  int64_t echo_us = 0, right_us = 0;
  bool operator==(const LeaderNod&) const = default;
};
using ToMember = std::variant<Refusal, LeaderAnswer, LeaderNod>;

std::string Encode(const ToLeader& message);
std::string Encode(const ToMember& message);
Result<ToLeader> DecodeToLeader(std::string_view frame);
Result<ToMember> DecodeToMember(std::string_view frame);

}  // namespace overcap::elastic
