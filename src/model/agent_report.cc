// SPDX-License-Identifier: Apache-2.0
#include "model/agent_report.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"
#include "model/report_tally.h"
#include "model/request_limits.h"

namespace overcap {
namespace {

// All that any line may hold. One flat struct, so that 20,000 lines need no tree each.
struct Line {
  std::string event, state, reason, boot_id, text, why;
  int64_t t = 0, pid = 0, start_ticks = 0;
  std::vector<int64_t> pids;
  int rank = 0, exit_status = -1, signal = 0, first_failed_rank = -1, task = 0, attempt = 1, master_port = 0;
};

// One place each for a field's name and its member; both readers below go through it.
std::string* TextMember(Line* line, std::string_view key) {
  if (key == "e") return &line->event;
  if (key == "state") return &line->state;
  if (key == "reason") return &line->reason;
  if (key == "boot_id") return &line->boot_id;
  if (key == "why") return &line->why;
  return key == "text" ? &line->text : nullptr;
}

int* IntMember(Line* line, std::string_view key) {
  if (key == "rank") return &line->rank;
  if (key == "exit_status") return &line->exit_status;
  if (key == "signal") return &line->signal;
  if (key == "first_failed_rank") return &line->first_failed_rank;
  if (key == "task") return &line->task;
  if (key == "try") return &line->attempt;
  return key == "master_port" ? &line->master_port : nullptr;
}

int64_t* LongMember(Line* line, std::string_view key) {
  if (key == "t") return &line->t;
  if (key == "pid") return &line->pid;
  return key == "start_ticks" ? &line->start_ticks : nullptr;
}

// Reads `{"key":"plain text","key":123,...}` without blanks, escapes and nesting: what agents write, nearly
// always.
class FastScanner {
 public:
  explicit FastScanner(std::string_view text) : text_(text) {}

  // False: not of that shape (or no JSON at all); `line` is then half filled.
  bool Scan(Line* line) {
    if (!Accept('{')) return false;
    do {
      std::string_view key;
      if (!Quoted(&key) || !Accept(':') || !Value(line, key)) return false;
    } while (Accept(','));
    return Accept('}') && at_ == text_.size();
  }

 private:
  bool Accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool Quoted(std::string_view* value) {
    if (!Accept('"')) return false;
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= 0x20 && text_[at_] < 0x7F && text_[at_] != '"' &&
           text_[at_] != '\\')
      ++at_;
    *value = text_.substr(begin, at_ - begin);
    return Accept('"');
  }

  template <typename N>
  bool Number(N* value) {
    const char* end = text_.data() + text_.size();
    const auto parsed = std::from_chars(text_.data() + at_, end, *value);
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    return parsed.ec == std::errc();
  }

  bool Value(Line* line, std::string_view key) {
    if (std::string* text = TextMember(line, key)) {
      std::string_view value;
      if (!Quoted(&value)) return false;
      text->assign(value);
      return true;
    }
    if (int* number = IntMember(line, key)) return Number(number);
    if (int64_t* number = LongMember(line, key)) return Number(number);
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// A report is its user's file, so what is kept of it is bounded whatever it contains.
constexpr size_t kMostLineBytes = 1 << 20;  // the pids of 100,000 ranks
constexpr size_t kMostNotes = 1000;
constexpr size_t kMostNoteBytes = 4096;
constexpr size_t kMostRankEnds = 1'000'000;

void KeepNote(std::string text, std::vector<std::string>* notes) {
  if (notes->size() >= kMostNotes) return;
  if (text.size() > kMostNoteBytes) text.resize(kMostNoteBytes);
  notes->push_back(std::move(text));
}

bool ReadPids(const nlohmann::json& array, std::vector<int64_t>* pids) {
  for (const auto& item : array) {
    if (!item.is_number_integer()) return false;
    pids->push_back(item.get<int64_t>());
  }
  return true;
}

bool SlowScan(std::string_view text, Line* line) {
  const auto object = ParseJsonObject(text, "line");
  if (!object) return false;
  FieldReader reader(*object, "line");
  for (const auto& [key, value] : object->items()) {
    if (std::string* member = TextMember(line, key)) reader.Read(key, member);
    if (int* member = IntMember(line, key)) reader.Read(key, member);
    if (int64_t* member = LongMember(line, key)) reader.Read(key, member);
  }
  const nlohmann::json* pids = reader.Array("pids");
  return reader.Check() && (pids == nullptr || ReadPids(*pids, &line->pids));
}

Ending EndingOf(Line* line) {
  const JobState state = JobStateFromName(line->state).value_or(JobState::kUnknown);
  return {state, line->exit_status, line->signal, line->first_failed_rank, std::move(line->reason)};
}

JsonWriter Begin(std::string_view event, int64_t now_us) {
  JsonWriter out;
  out.BeginObject().Field("e", event).Field("t", now_us);
  return out;
}

std::string Finish(JsonWriter* out) {
  return out->EndObject().Take() + '\n';
}

void WriteEnding(JsonWriter* out, const Ending& ending) {
  out->Field("state", JobStateName(ending.state)).Field("exit_status", ending.exit_status);
  out->Field("signal", ending.signal).Field("first_failed_rank", ending.first_failed_rank);
  out->Field("reason", ending.reason);
}

}  // namespace

std::string ClaimToJson(const Claim& claim) {
  JsonWriter out;
  out.BeginObject().Field("pid", claim.pid).Field("start_ticks", claim.start_ticks);
  out.Field("boot_id", claim.boot_id).Field("by", claim.by);
  if (!claim.host.empty()) out.Field("host", claim.host);
  if (claim.slurm_id > 0) out.Field("slurm_id", claim.slurm_id).Field("slurm_restart", claim.slurm_restart);
  if (!claim.nodes.empty()) out.Field("nodes", claim.nodes);
  return out.EndObject().Take();
}

Result<Claim> ClaimFromJson(std::string_view json) {
  OC_TRY(object, ParseJsonObject(json, "claim"));
  FieldReader reader(object, "claim");
  Claim claim;
  reader.Read("pid", &claim.pid);
  reader.Read("start_ticks", &claim.start_ticks);
  reader.Read("boot_id", &claim.boot_id);
  reader.Read("by", &claim.by);
  reader.Read("host", &claim.host);
  reader.Read("slurm_id", &claim.slurm_id);
  reader.Read("slurm_restart", &claim.slurm_restart);
  reader.Read("nodes", &claim.nodes);
  OC_TRY_VOID(reader.Check());
  return claim;
}

size_t AgentReportReader::Feed(std::string_view bytes) {
  size_t taken = 0;
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n', taken)) {
    TakeLine(bytes.substr(taken, end - taken));
    taken = end + 1;
  }
  return taken;
}

TaskResult* AgentReportReader::Task(int task, int attempt, int64_t at_us) {
  if (report_.tasks.size() >= size_t{kMaxArrayTasks} && !task_places_.contains(task)) return nullptr;
  const auto [place, is_new] = task_places_.try_emplace(task, report_.tasks.size());
  if (is_new) report_.tasks.push_back({task, attempt, {}, at_us});
  TaskResult* result = &report_.tasks[place->second];
  if (attempt < result->attempt) return nullptr;
  result->attempt = attempt;
  result->last_us = at_us;
  return result;
}

void AgentReportReader::TakeLine(std::string_view text) {
  Line line;
  if (!FastScanner(text).Scan(&line)) {
    line = Line{};
    if (text.size() > kMostLineBytes || !SlowScan(text, &line)) {
      ++report_.damaged_lines;
      return;
    }
  }
  report_.last_us = std::max(report_.last_us, line.t);
  if (line.event == "task_start") {
    if (TaskResult* task = Task(line.task, line.attempt, line.t))
      task->ending = Ending{JobState::kRunning, -1, 0, -1, {}};
  } else if (line.event == "task_end") {
    if (TaskResult* task = Task(line.task, line.attempt, line.t)) task->ending = EndingOf(&line);
  } else if (line.event == "rank_end") {
    if (report_.rank_ends.size() < kMostRankEnds)
      report_.rank_ends.push_back({line.rank, line.exit_status, line.signal, line.t});
  } else if (line.event == "claimed") {
    report_.claim = Claim{line.pid, line.start_ticks, std::move(line.boot_id)};
  } else if (line.event == "started") {
    report_.started = true;
    report_.started_us = line.t;
    report_.pids = std::move(line.pids);
    report_.master_port = line.master_port;
  } else if (line.event == "note") {
    KeepNote(std::move(line.text), &report_.notes);
  } else if (line.event == "requeue") {
    report_.requeue = std::move(line.why);
  } else if (line.event == "not_requeued") {
    report_.requeue.clear();
    KeepNote(std::move(line.text), &report_.notes);
  } else if (line.event == "end") {
    report_.end = EndingOf(&line);
    report_.ended_us = line.t;
  } else {
    ++report_.damaged_lines;
  }
}

ReportBounds BoundsOfReport(const JobSpec& spec) {
  if (!spec.owner.told()) return {};
  const int64_t tries = 1 + std::clamp(spec.max_restarts, 0, 1000);
  const int64_t whole = kWholeReportBytes + kReportBytesPerTask * spec.array.Count() * tries;
  return {std::min(whole, kMaxReportBytes), kSlowReportBytes, kMaxReportLine};
}

ReportTally::ReportTally(const ArraySpec& array, ReportDetail detail, const ReportBounds& bounds)
    : array_(&array), detail_(detail), left_(bounds) {
  int before = 0;
  for (const ArraySpec::Range& range : array.ranges) {
    before_.push_back(before);
    before += (range.last - range.first) / range.step + 1;
  }
}

size_t ReportTally::Feed(std::string_view bytes) {
  size_t taken = 0;
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n', taken)) {
    TakeLine(bytes.substr(taken, end - taken));
    taken = end + 1;
  }
  return taken;
}

// As ArraySpec::PositionOf(), but fast also for an array of many ranges.
int ReportTally::PositionOf(int task) const {
  const auto& ranges = array_->ranges;
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), task,
                       [](int index, const ArraySpec::Range& range) { return index < range.first; });
  if (after == ranges.begin()) return -1;
  const ArraySpec::Range& range = *(after - 1);
  if (task > range.last || (task - range.first) % range.step != 0) return -1;
  return before_[static_cast<size_t>(after - 1 - ranges.begin())] + (task - range.first) / range.step;
}

void ReportTally::TakeLine(std::string_view text) {
  constexpr std::string_view kEndLine = R"({"e":"end")";
  if (text.size() > left_.line_bytes) return;
  const auto cost = static_cast<int64_t>(text.size()) + 1;
  left_.whole_bytes -= std::min(left_.whole_bytes, cost);
  if (left_.whole_bytes == 0 && !text.starts_with(kEndLine)) return;
  Line line;
  if (!FastScanner(text).Scan(&line)) {
    left_.slow_bytes -= std::min(left_.slow_bytes, cost);
    line = Line{};
    if (left_.slow_bytes == 0 || !SlowScan(text, &line)) return;
  }
  if (line.event == "end") {
    ended_us_ = line.t;
    end_ = EndingOf(&line);
  } else if (line.event == "task_start") {
    TakeTask(line.task, {JobState::kRunning, -1, line.attempt, line.t});
  } else if (line.event == "task_end") {
    const JobState state = JobStateFromName(line.state).value_or(JobState::kUnknown);
    TakeTask(line.task, {state, line.exit_status, line.attempt, line.t});
  }
}

void ReportTally::TakeTask(int task, const Task& now) {
  const int position = PositionOf(task);
  if (position < 0) return;
  const auto place = static_cast<size_t>(position);
  if (seen_.size() <= place) seen_.resize(static_cast<size_t>(array_->Count()), Seen::kNever);
  if (detail_ == ReportDetail::kTasks) {
    if (tasks_.empty()) tasks_.resize(seen_.size());
    if (seen_[place] != Seen::kNever && now.attempt < tasks_[place].attempt) return;
    tasks_[place] = now;
  }
  const Seen kind = now.state == JobState::kRunning     ? Seen::kRunning
                    : now.state == JobState::kSucceeded ? Seen::kSucceeded
                                                        : Seen::kFailed;
  if (seen_[place] != Seen::kNever) --counts_[static_cast<size_t>(seen_[place])];
  ++counts_[static_cast<size_t>(kind)];
  seen_[place] = kind;
}

AgentReport ParseAgentReport(std::string_view text) {
  AgentReportReader reader;
  reader.Feed(text);
  return reader.Take();
}

std::string ClaimedLine(int64_t now_us, const Claim& claim) {
  JsonWriter out = Begin("claimed", now_us);
  out.Field("pid", claim.pid).Field("start_ticks", claim.start_ticks).Field("boot_id", claim.boot_id);
  return Finish(&out);
}

std::string StartedLine(int64_t now_us, const std::vector<int64_t>& pids, int master_port) {
  JsonWriter out = Begin("started", now_us);
  out.Key("pids").BeginArray();
  for (const int64_t pid : pids) out.Int(pid);
  out.EndArray().Field("master_port", master_port);
  return Finish(&out);
}

std::string RankEndLine(const RankEnd& end) {
  JsonWriter out = Begin("rank_end", end.at_us);
  out.Field("rank", end.rank).Field("exit_status", end.exit_status).Field("signal", end.signal);
  return Finish(&out);
}

std::string NoteLine(int64_t now_us, std::string_view text) {
  JsonWriter out = Begin("note", now_us);
  out.Field("text", text);
  return Finish(&out);
}

std::string TaskStartLine(int64_t now_us, int task, int attempt) {
  JsonWriter out = Begin("task_start", now_us);
  out.Field("task", task).Field("try", attempt);
  return Finish(&out);
}

std::string TaskEndLine(int64_t now_us, int task, int attempt, const Ending& ending) {
  JsonWriter out = Begin("task_end", now_us);
  out.Field("task", task).Field("try", attempt);
  WriteEnding(&out, ending);
  return Finish(&out);
}

std::string RequeueLine(int64_t now_us, std::string_view why) {
  JsonWriter out = Begin("requeue", now_us);
  out.Field("why", why);
  return Finish(&out);
}

std::string NotRequeuedLine(int64_t now_us, std::string_view text) {
  JsonWriter out = Begin("not_requeued", now_us);
  out.Field("text", text);
  return Finish(&out);
}

std::string EndLine(int64_t now_us, const Ending& ending) {
  JsonWriter out = Begin("end", now_us);
  WriteEnding(&out, ending);
  return Finish(&out);
}

}  // namespace overcap
