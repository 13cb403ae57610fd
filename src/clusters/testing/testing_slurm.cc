// SPDX-License-Identifier: Apache-2.0
#include "clusters/testing/testing_slurm.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/submit_reply.h"
#include "sys/user.h"

namespace overcap {
namespace {

ClusterSettings SettingsFor(const std::string& root) {
  ClusterSettings settings;
  settings.name = "sky";
  settings.driver = "slurm";
  settings.root = root;
  settings.binary = "/opt/overcap";
  // Its own: processes that test at the same time must not see each other's queues.
  settings.scheduler.programs = root + "/programs";
  return settings;
}

ToolAnswer Answer(std::string out) {
  ToolAnswer answer;
  answer.end.exit_status = 0;
  answer.out = std::move(out);
  return answer;
}

ToolAnswer Failure(std::string err) {
  ToolAnswer answer;
  answer.end.exit_status = 1;
  answer.err = std::move(err);
  return answer;
}

std::string OptionOf(const std::vector<std::string>& argv, std::string_view name) {
  for (const std::string& word : argv) {
    if (word.starts_with(name)) return word.substr(name.size());
  }
  return {};
}

// Of names without quotes and backslashes.
std::string NameIn(const std::string& script) {
  constexpr std::string_view kStart = "#SBATCH \"--job-name=";
  const size_t at = script.find(kStart);
  if (at == std::string::npos) return {};
  const size_t begin = at + kStart.size();
  return script.substr(begin, script.find('"', begin) - begin);
}

std::string Field(const TestingSlurm::Job& job, const std::string& column) {
  const std::map<std::string, std::string> fields = {
      {"JobID", StrCat(job.id)},
      {"UserName", job.user},
      {"State", job.state},
      {"Reason", job.reason},
      {"Name", job.name},
      {"Comment", job.comment},
      {"EndTime", StrCat(job.end_s)},
      {"NumNodes", "1"},
      {"NumCPUs", "1"},
      {"exit_code", "0"},
      {"RestartCnt", "0"},
      {"ArrayJobID", StrCat(job.id)},
      {"Partition", "short"},
      {"SubmitTime", "1800000000"},
  };
  const auto found = fields.find(column);
  return found == fields.end() ? "N/A" : found->second;
}

}  // namespace

TestingSlurm::TestingSlurm(const std::string& root) : SlurmContext(SettingsFor(root)) {}

Result<std::string> TestingSlurm::Program(std::string_view name) const {
  return StrCat("/programs/", name);
}

Result<ToolAnswer> TestingSlurm::CallProgram(SpawnRequest request, std::chrono::milliseconds) {
  calls.push_back(request.argv);
  const std::string& program = request.argv[0];
  if (program == "sbatch") {
    environment = request.env;
    if (during_submit) during_submit();
    const Submit how = std::exchange(next, Submit::kAnswers);
    if (how == Submit::kRefuses)
      return Failure("sbatch: error: Batch job submission failed: Invalid partition name specified\n");
    if (how == Submit::kBreaks) return Fail(ErrorCode::kUnavailable, "'sbatch' did not end in time");
    if (how == Submit::kIsLostWithoutAnswer)
      return Failure("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
    ToolAnswer answer = Sbatch(request.argv);
    if (how == Submit::kIsTakenWithoutAnswer)
      return Failure("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
    return answer;
  }
  if (away) return Failure("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  if (program == "squeue") return Squeue(request.argv);
  if (program == "sacct") return Failure("Slurm accounting storage is disabled\n");
  for (Job& job : jobs) {
    const bool named =
        std::find(request.argv.begin(), request.argv.end(), StrCat(job.id)) != request.argv.end();
    if (!named) continue;
    if (program == "scancel") job.state = "CANCELLED", job.reason = "None", job.end_s = 1'800'000'000;
    if (program == "scontrol") job.reason = request.argv[1] == "hold" ? "JobHeldUser" : "Priority";
  }
  return Answer("");
}

Result<std::unique_ptr<ToolRun>> TestingSlurm::StartProgram(SpawnRequest request,
                                                            std::chrono::milliseconds timeout) {
  // Does all its work when it has got its input: one that is given none has done nothing.
  class Run : public ToolRun {
   public:
    Run(TestingSlurm* slurm, SpawnRequest asked, std::chrono::milliseconds time)
        : slurm_(slurm), request_(std::move(asked)), timeout_(time) {}
    void Give(std::string_view input) override {
      slurm_->scripts.emplace_back(input);
      answer_ = slurm_->CallProgram(request_, timeout_);
    }
    Result<std::string> Line() override {
      if (!answer_) return Fail(answer_.error());
      return answer_->out;
    }
    Result<ToolAnswer> Finish() override { return answer_; }
    void Leave() override {}

   private:
    TestingSlurm* slurm_;
    SpawnRequest request_;
    std::chrono::milliseconds timeout_;
    Result<ToolAnswer> answer_ = ToolAnswer{{1, 0}, "", "sbatch: error: Batch script is empty!\n"};
  };
  ++started;
  return std::make_unique<Run>(this, std::move(request), timeout);
}

ToolAnswer TestingSlurm::Sbatch(const std::vector<std::string>& argv) {
  Job job;
  job.id = next_id_++;
  job.user = UserName();
  job.comment = OptionOf(argv, "--comment=");
  job.name = NameIn(scripts.empty() ? "" : scripts.back());
  jobs.push_back(job);
  return Answer(StrCat(job.id, "\n"));
}

ToolAnswer TestingSlurm::Squeue(const std::vector<std::string>& argv) {
  const auto format = std::find(argv.begin(), argv.end(), "--Format");
  const std::string only = OptionOf(argv, "--jobs=");
  std::string out;
  for (const Job& job : jobs) {
    if (!only.empty() && only != StrCat(job.id)) continue;
    for (const std::string& column : Split(*std::next(format), ',')) {
      const size_t colon = column.find(':');
      out += StrCat(Field(job, column.substr(0, colon)), column.substr(colon + 1));
    }
    out += '\n';
  }
  return Answer(std::move(out));
}

}  // namespace overcap
