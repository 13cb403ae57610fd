// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/pending_reason.h"

#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

struct ReasonRow {
  std::string_view word;
  ReasonKind kind;
  std::string_view text;
};

constexpr ReasonRow kReasons[] = {
    {"None", ReasonKind::kNone, ""},
    {"(null)", ReasonKind::kNone, ""},
    {"", ReasonKind::kNone, ""},
    {"Resources", ReasonKind::kTurn, "next in turn, waits until enough is free"},
    {"Priority", ReasonKind::kTurn, "jobs with a higher priority are ahead"},
    {"Prolog", ReasonKind::kTurn, "its nodes are being prepared"},
    {"Cleaning", ReasonKind::kTurn, "its last start is still being cleaned up"},
    {"SchedDefer", ReasonKind::kTurn, "the scheduler has put off looking at it"},
    {"Licenses", ReasonKind::kTurn, "waits for a licence"},
    {"BurstBufferResources", ReasonKind::kTurn, "waits for space in the burst buffer"},
    {"BurstBufferStageIn", ReasonKind::kTurn, "its files are being staged in"},
    {"PowerNotAvail", ReasonKind::kTurn, "waits until enough electric power is free"},
    {"PowerReserved", ReasonKind::kTurn, "waits for electric power that is reserved"},
    {"BlockMaxError", ReasonKind::kNodes, "a block of nodes has too many errors"},
    {"BlockFreeAction", ReasonKind::kNodes, "a block of nodes is being freed"},
    {"FedJobLock", ReasonKind::kTurn, "waits for the other clusters of the federation"},
    {"BeginTime", ReasonKind::kTime, "not before its begin time"},
    {"Reservation", ReasonKind::kTime, "waits for its reservation"},
    {"DeadLine", ReasonKind::kNever, "its deadline has passed"},
    {"Dependency", ReasonKind::kDependency, "waits for other jobs to end"},
    {"DependencyNeverSatisfied", ReasonKind::kNever, "a job that it waits for did not end as required"},
    {"JobHeldUser", ReasonKind::kHeld, "held by its user"},
    {"JobHeldAdmin", ReasonKind::kHeld, "held by an administrator"},
    {"JobHoldMaxRequeue", ReasonKind::kHeld, "held: put back into the queue too often"},
    {"ReservationDeleted", ReasonKind::kHeld, "held: its reservation was deleted"},
    {"JobArrayTaskLimit", ReasonKind::kLimit, "its array runs as many tasks as it may at a time"},
    {"QOSUsageThreshold", ReasonKind::kLimit, "the QOS's usage threshold is passed"},
    {"QOSJobLimit", ReasonKind::kLimit, "a limit on jobs in the QOS is reached"},
    {"QOSResourceLimit", ReasonKind::kLimit, "a limit of the QOS is reached"},
    {"QOSTimeLimit", ReasonKind::kLimit, "a time limit of the QOS is reached"},
    {"AssociationJobLimit", ReasonKind::kLimit, "a limit on jobs of the account is reached"},
    {"AssociationResourceLimit", ReasonKind::kLimit, "a limit of the account is reached"},
    {"AssociationTimeLimit", ReasonKind::kLimit, "a time limit of the account is reached"},
    {"AccountingPolicy", ReasonKind::kLimit, "a limit of the account or QOS is reached"},
    {"MaxMemPerLimit", ReasonKind::kNever, "asks for more memory per node or CPU than the partition allows"},
    {"ReqNodeNotAvail", ReasonKind::kNodes, "a node that it needs is down, drained or reserved"},
    {"NodeDown", ReasonKind::kNodes, "a node that it needs is down"},
    {"PartitionDown", ReasonKind::kNodes, "the partition is down"},
    {"PartitionInactive", ReasonKind::kNodes, "the partition is inactive"},
    {"FrontEndDown", ReasonKind::kNodes, "no front end node is up"},
    {"Nodes required for job are DOWN", ReasonKind::kNodes,
     "nodes that it needs are down, drained or reserved"},
    {"PartitionNodeLimit", ReasonKind::kNever, "asks for more nodes than the partition allows or has up"},
    {"PartitionTimeLimit", ReasonKind::kNever, "asks for more time than the partition allows"},
    {"PartitionConfig", ReasonKind::kNever, "asks for what the partition does not allow"},
    {"BadConstraints", ReasonKind::kNever, "no node can ever satisfy what it asks for"},
    {"InvalidAccount", ReasonKind::kNever, "its account does not exist"},
    {"InvalidQOS", ReasonKind::kNever, "its QOS does not exist"},
    {"QOSNotAllowed", ReasonKind::kNever, "its QOS may not be used with this account or partition"},
    {"AccountNotAllowed", ReasonKind::kNever, "its account may not use this partition"},
    {"RequiresReservation", ReasonKind::kNever, "the partition takes only jobs with a reservation"},
    {"BurstBufferOperation", ReasonKind::kNever, "an operation of the burst buffer failed"},
    {"NonZeroExitCode", ReasonKind::kEnded, "ended with an exit status that is not 0"},
    {"OutOfMemory", ReasonKind::kEnded, "out of memory"},
    {"TimeLimit", ReasonKind::kEnded, "time limit reached"},
    {"InactiveLimit", ReasonKind::kEnded, "ended for being inactive"},
    {"JobLaunchFailure", ReasonKind::kEnded, "could not be started on its nodes"},
    {"SystemFailure", ReasonKind::kEnded, "failure of Slurm, the file system or the network"},
    {"RaisedSignal", ReasonKind::kEnded, "ended by a signal"},
};

// The limits have names made of parts: Assoc|QOS|Max  Grp|Max|Min  GRES|Cpu|...  Minutes|PerUser|...
struct Part {
  std::string_view word, text;
};
constexpr Part kHolders[] = {{"Assoc", "account"}, {"QOS", "QOS"}, {"", "account"}};
constexpr Part kSpans[] = {{"Grp", ""}, {"Max", ""}, {"Min", ""}};
constexpr Part kThings[] = {{"SubmitJobs", "submitted jobs"},
                            {"SubmitJob", "submitted jobs"},
                            {"Jobs", "running jobs"},
                            {"GRES", "GPUs"},
                            {"CPU", "CPUs"},
                            {"Cpu", "CPUs"},
                            {"Memory", "memory"},
                            {"Mem", "memory"},
                            {"Node", "nodes"},
                            {"WallDuration", "run time"},
                            {"Wall", "run time"},
                            {"Energy", "energy"},
                            {"License", "licences"},
                            {"Billing", "billing units"},
                            {"BB", "burst buffer space"},
                            {"Unknown", "resources"}};
constexpr Part kWays[] = {{"", ""},
                          {"NotSatisfied", ""},
                          {"RunMinutes", ", counted in minutes of running jobs"},
                          {"Minutes", ", counted in minutes"},
                          {"MinutesPerJob", " per job, counted in minutes"},
                          {"PerJob", " per job"},
                          {"PerNode", " per node"},
                          {"PerUser", " per user"},
                          {"PerAccount", " per account"}};

template <size_t kSize>
const Part* TakePart(const Part (&parts)[kSize], std::string_view* word) {
  for (const Part& part : parts) {
    if (word->substr(0, part.word.size()) != part.word) continue;
    word->remove_prefix(part.word.size());
    return &part;
  }
  return nullptr;
}

const Part* WholePart(std::string_view word) {
  for (const Part& part : kWays) {
    if (part.word == word) return &part;
  }
  return nullptr;
}

std::optional<PendingReason> ReadLimit(std::string_view word) {
  std::string_view rest = word;
  if (rest.size() > 5 && rest.substr(rest.size() - 5) == "Limit") rest.remove_suffix(5);
  const Part* holder = TakePart(kHolders, &rest);
  const Part* span = TakePart(kSpans, &rest);
  const Part* thing = span == nullptr ? nullptr : TakePart(kThings, &rest);
  const Part* way = thing == nullptr ? nullptr : WholePart(rest);
  if (way == nullptr) return std::nullopt;
  const std::string what = StrCat(thing->text, way->text);
  PendingReason reason{ReasonKind::kLimit, std::string(word), ""};
  const bool shared = rest == "PerUser" || rest == "PerAccount" || rest.empty() || span->word == "Grp";
  if (span->word == "Min") {
    reason.kind = ReasonKind::kNever;
    reason.text = StrCat("asks for fewer ", what, " than the ", holder->text, " requires");
  } else if (!shared) {
    reason.kind = ReasonKind::kNever;
    reason.text = StrCat("asks for more than the ", holder->text, " allows: ", what);
  } else if (span->word == "Grp") {
    reason.text = StrCat("the cap of the ", holder->text, " is in use: ", what, " of all its jobs together");
  } else {
    reason.text = StrCat("the limit of the ", holder->text, " is in use: ", what);
  }
  return reason;
}

}  // namespace

PendingReason ReadPendingReason(std::string_view raw) {
  raw = Trim(raw);
  if (raw.size() > 2 && raw.front() == '(' && raw.back() == ')' && raw != "(null)") {
    raw = raw.substr(1, raw.size() - 2);
  }
  const size_t end = raw.find_first_of(",:");
  const std::string_view word = Trim(raw.substr(0, end));
  std::string_view more = end == std::string_view::npos ? "" : raw.substr(end + 1);
  while (!more.empty() && (more.front() == ' ' || more.front() == '_')) more.remove_prefix(1);
  for (const ReasonRow& row : kReasons) {
    if (row.word != word) continue;
    const bool detail = row.kind == ReasonKind::kNodes && !more.empty();
    return {row.kind, std::string(word),
            detail ? StrCat(row.text, " (", ToUtf8(more), ")") : std::string(row.text)};
  }
  if (auto limit = ReadLimit(word)) return *limit;
  return {ReasonKind::kUnknown, std::string(word), ToUtf8(raw)};
}

}  // namespace overcap
