// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_sessions.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "clusters/slurm/job_folder.h"
#include "clusters/slurm/job_planner.h"
#include "clusters/slurm/pending_reason.h"
#include "clusters/slurm/session_command.h"
#include "clusters/slurm/slurm_queue.h"
#include "clusters/slurm/state_words.h"
#include "clusters/slurm/submit_reply.h"
#include "clusters/slurm/tool_variables.h"
#include "model/host_list.h"
#include "sys/variables.h"

namespace overcap {
namespace {

// As old as the queue may be: for who acts now, and for who only watches.
constexpr int64_t kActingAgeUs = 0, kWatchingAgeUs = 10'000'000;

// What srun takes from its user's variables; Slurm sets none of these in a job.
constexpr std::string_view kWishes[] = {"SLURM_ACCOUNT", "SLURM_PARTITION", "SLURM_QOS", "SLURM_RESERVATION",
                                        "SLURM_CONSTRAINT"};
constexpr std::string_view kContact[] = {"PATH", "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS"};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The user's own variables, which reach the session, without those that would change what srun does.
std::vector<std::string> SrunEnvironment() {
  const Variables own = Variables::OfThisProcess();
  std::vector<std::string> kept;
  for (const std::string& entry : own.entries()) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (!IsUnwantedToolVariable(name) || Contains(kWishes, name)) kept.push_back(entry);
  }
  return kept;
}

bool Runs(const SqueueJob& row) {
  return ReadSlurmState(row.raw_state).state == JobState::kRunning && !row.node_list.empty();
}

Error NotRunning(const JobRecord& record) {
  const std::string state(record.state == JobState::kUnknown ? record.raw_state : JobStateName(record.state));
  const bool over = IsFinal(record.state) && !record.dir.empty();
  return {ErrorCode::kConflict, StrCat("job '", record.spec.id, "' is ", state, ", not running"),
          over ? StrCat("its folder is ", ShellQuote(record.dir)) : ""};
}

Result<std::vector<std::string>> NodesOfRows(const std::vector<SqueueJob>& rows) {
  std::vector<std::string> nodes;
  for (const SqueueJob& row : rows) {
    OC_TRY(of_row, ExpandHostList(row.node_list));
    for (std::string& node : of_row) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

std::vector<std::string> EnterWords(const std::string& binary, const JobRecord& record,
                                    const AttachRequest& request) {
  std::vector<std::string> words = {binary, "enter"};
  const bool of_job = request.job_environment && !record.dir.empty() && record.attempt > 0;
  if (of_job) {
    words.insert(words.end(), {"--job", record.dir, "--attempt", std::to_string(record.attempt), "--here",
                               std::string(kVariablesOfAStep)});
  } else if (request.command.empty()) {
    words.push_back("--login");
  }
  if (!request.command.empty()) {
    words.push_back("--");
    words.insert(words.end(), request.command.begin(), request.command.end());
  }
  return words;
}

}  // namespace

Result<int64_t> SlurmSessions::SlurmIdOf(const JobRecord& record) const {
  // A job that Overcap did not submit is known by Slurm's number.
  if (record.dir.empty()) {
    if (const auto number = ParseInt(record.spec.id); number && *number > 0) return int64_t{*number};
  }
  const auto handle = SlurmJobFolder(context_->JobFolder(record.spec.id)).Handle();
  if (handle && handle->slurm_id > 0) return handle->slurm_id;
  return Fail(ErrorCode::kUnavailable,
              StrCat("nobody knows yet which of Slurm's jobs '", record.spec.id, "' is"),
              "try again in a moment");
}

Result<std::vector<SqueueJob>> SlurmSessions::RunningRows(int64_t slurm_id, int64_t max_age_us) {
  OC_TRY(queue, context_->mirror().Read(MirrorKind::kQueue, max_age_us));
  OC_TRY(rows, ParseSqueue(*queue.text, queue.mark));
  std::erase_if(rows, [&](const SqueueJob& row) {
    return (row.job_id != slurm_id && row.array_job_id != slurm_id) || !Runs(row);
  });
  return rows;
}

Result<std::vector<std::string>> SlurmSessions::NodesOf(const JobRecord& record) {
  OC_TRY(slurm_id, SlurmIdOf(record));
  OC_TRY(rows, RunningRows(slurm_id, kWatchingAgeUs));
  return NodesOfRows(rows);
}

// For somebody who wants to go there: a job that is too young for the mirror is asked for itself.
Result<std::vector<std::string>> SlurmSessions::NodesNow(int64_t slurm_id) {
  OC_TRY(rows, RunningRows(slurm_id, kActingAgeUs));
  if (!rows.empty()) return NodesOfRows(rows);
  OC_TRY(fresh, SlurmQueue(context_).LookAt(slurm_id));
  std::erase_if(fresh, [](const SqueueJob& row) { return !Runs(row); });
  return NodesOfRows(fresh);
}

// The node as Slurm calls it.
Result<std::string> SlurmSessions::CheckNode(const JobRecord& record, int64_t slurm_id,
                                             const std::string& node) {
  if (node.empty()) return std::string();
  OC_TRY(nodes, NodesNow(slurm_id));
  if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return node;
  return Fail(ErrorCode::kUsage, StrCat("job '", record.spec.id, "' has nothing on node ", Quoted(node)),
              nodes.empty() ? "" : StrCat("it runs on ", Join(nodes, ", ")));
}

Result<Replacement> SlurmSessions::Become(std::vector<std::string> argv) const {
  OC_TRY(program, context_->Program("srun"));
  return Replacement{
      .program = std::move(program), .argv = std::move(argv), .environment = SrunEnvironment(), .folder = {}};
}

Result<Replacement> SlurmSessions::PlanAttach(const JobRecord& record, const AttachRequest& request) {
  if (record.state != JobState::kRunning) return Fail(NotRunning(record));
  OC_TRY(slurm_id, SlurmIdOf(record));
  AttachCommand attach;
  attach.slurm_id = slurm_id;
  if (!record.spec.array.empty()) {
    // A step belongs to one task: the first that runs, or that runs on the node.
    OC_TRY(rows, RunningRows(slurm_id, kActingAgeUs));
    const auto fits = [&](const SqueueJob& row) {
      const auto nodes = ExpandHostList(row.node_list);
      return request.node.empty() ||
             (nodes && std::find(nodes->begin(), nodes->end(), request.node) != nodes->end());
    };
    const auto row = std::find_if(rows.begin(), rows.end(), fits);
    if (row != rows.end()) attach.slurm_id = row->job_id;
  }
  OC_TRY(node, CheckNode(record, slurm_id, request.node));
  attach.node = std::move(node);
  attach.terminal = request.terminal;
  attach.stream = request.stream;
  const bool plain = !request.job_environment && !request.command.empty();
  attach.command = plain ? request.command : EnterWords(context_->settings().binary, record, request);
  return Become(SrunIntoJob(attach));
}

Result<Replacement> SlurmSessions::PlanSession(const JobSpec& spec, bool terminal) {
  std::vector<std::string> command = spec.command;
  if (command.empty()) command = {context_->settings().binary, "enter", "--login"};
  OC_TRY(argv, SrunSession(spec, JobPlanner(context_).Settings(spec), command, terminal));
  return Become(std::move(argv));
}

Result<SessionState> SlurmSessions::LookAtSession(const std::string& id) {
  OC_TRY(queue, context_->mirror().Read(MirrorKind::kQueue, kWatchingAgeUs));
  OC_TRY(rows, ParseSqueue(*queue.text, queue.mark));
  const std::string comment = SessionComment(id);
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const SqueueJob& job) { return job.comment == comment; });
  if (row == rows.end()) return SessionState{};
  SessionState state;
  state.known = true;
  state.running = Runs(*row);
  if (!state.running) state.waits_for = ReadPendingReason(row->raw_reason).text;
  return state;
}

std::string SlurmSessions::VariablesOfANode() const {
  return std::string(kVariablesOfAStep);
}

bool SlurmSessions::IsChatter(std::string_view line) const {
  return IsSrunChatter(line);
}

std::optional<Error> SlurmSessions::FailureIn(std::string_view line) const {
  if (!line.starts_with("srun: ") || line.find("Unable to allocate resources: ") == std::string_view::npos)
    return std::nullopt;
  return ReadToolFailure("srun", line, 1, {context_->settings().name}).error;
}

std::vector<std::string> SlurmSessions::Contact() const {
  const Variables own = Variables::OfThisProcess();
  std::vector<std::string> contact;
  for (const std::string& entry : own.entries()) {
    if (Contains(kContact, std::string_view(entry).substr(0, entry.find('=')))) contact.push_back(entry);
  }
  return contact;
}

}  // namespace overcap
