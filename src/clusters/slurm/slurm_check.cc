// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_check.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "clusters/slurm/accounts_text.h"
#include "clusters/slurm/check_folder.h"
#include "clusters/slurm/lab_accounts.h"
#include "clusters/slurm/slurm_time.h"
#include "clusters/slurm/slurm_view.h"
#include "clusters/slurm/submit_reply.h"
#include "sys/user.h"

namespace overcap {
namespace {

using Health = ClusterFinding::Health;
constexpr std::chrono::milliseconds kCallTimeout{12'000};
constexpr int64_t kSlowUs = 1'000'000, kSkewUs = 2'000'000;
constexpr int kDefaultCredExpire = 120, kLongCredExpire = 30;

struct Needed {
  std::string_view name;
  Health without;
  std::string_view why;
};
constexpr Needed kPrograms[] = {
    {"sbatch", Health::kBroken, "jobs cannot be submitted"},
    {"squeue", Health::kBroken, "jobs cannot be seen"},
    {"sinfo", Health::kBroken, "nodes cannot be seen"},
    {"scontrol", Health::kBroken, "jobs cannot be held or requeued"},
    {"scancel", Health::kBroken, "jobs cannot be stopped"},
    {"srun", Health::kBroken, "there are no shells in jobs, and no jobs of several nodes"},
    {"sacct", Health::kWorse, "what became of jobs that Slurm has forgotten is not known"},
    {"sacctmgr", Health::kWorse, "labs and their caps are not known"},
};

bool Broken(const std::vector<ClusterFinding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const ClusterFinding& one) { return one.health == Health::kBroken; });
}

void Append(std::vector<ClusterFinding> more, std::vector<ClusterFinding>* findings) {
  findings->insert(findings->end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

std::string Took(int64_t us) {
  return us < 1'000'000 ? StrCat(std::max<int64_t>(1, us / 1000), " ms") : FormatElapsed(us);
}

std::vector<ClusterFinding> CheckPrograms(const SlurmContext& context) {
  std::vector<ClusterFinding> findings;
  std::string folder;
  for (const Needed& one : kPrograms) {
    const auto path = context.Program(one.name);
    if (!path) {
      findings.push_back(
          {"programs", one.without, StrCat("there is no '", one.name, "': ", one.why), path.error().hint});
    } else if (one.name == "sbatch") {
      folder = path->substr(0, path->rfind('/'));
    }
  }
  if (findings.empty()) findings.push_back({"programs", Health::kFine, StrCat("all in '", folder, "'"), ""});
  return findings;
}

// One call, with what it means when it fails.
struct Timed {
  std::optional<std::string> out;
  int64_t asked_us = 0, answered_us = 0, took_us = 0;
  Error error;
};
Timed Ask(SlurmContext* context, const std::vector<std::string>& argv) {
  Timed timed;
  timed.asked_us = context->clock().WallUs();
  const int64_t began = context->clock().MonotonicUs();
  auto out = context->Ask(argv, kCallTimeout);
  timed.took_us = context->clock().MonotonicUs() - began;
  timed.answered_us = context->clock().WallUs();
  if (out) {
    timed.out = std::move(*out);
  } else {
    timed.error = out.error();
  }
  return timed;
}

bool IsAuthentication(const Error& error) {
  return error.message.find("unge") != std::string::npos ||
         error.message.find("uthenticat") != std::string::npos;
}

// Whether the controller answers, how fast, and what its configuration and clock say.
std::vector<ClusterFinding> CheckController(SlurmContext* context, std::optional<SlurmConfig>* config) {
  std::vector<ClusterFinding> findings;
  const Timed asked = Ask(context, ConfigCommand());
  if (!asked.out) {
    findings.push_back({IsAuthentication(asked.error) ? "authentication" : "controller", Health::kBroken,
                        asked.error.message, asked.error.hint});
    return findings;
  }
  auto parsed = ParseConfig(*asked.out);
  if (!parsed) {
    findings.push_back({"controller", Health::kBroken, parsed.error().message, ""});
    return findings;
  }
  const bool slow = asked.took_us > kSlowUs;
  findings.push_back({"controller", slow ? Health::kWorse : Health::kFine,
                      StrCat("Slurm ", parsed->Get("SLURM_VERSION"), ", cluster '",
                             parsed->Get("ClusterName"), "', answers in ", Took(asked.took_us)),
                      slow ? "it is busy: read less often, submit arrays instead of many jobs" : ""});
  findings.push_back({"configuration", Health::kFine, std::string(parsed->Get("SLURM_CONF")), ""});
  findings.push_back({"authentication", Health::kFine, std::string(parsed->Get("AuthType")), ""});
  Append(CheckSlurmClock(*asked.out, asked.asked_us, asked.answered_us), &findings);
  *config = std::move(*parsed);
  return findings;
}

ClusterFinding CheckAccounting(SlurmContext* context, const SlurmConfig& config) {
  if (config.Get("AccountingStorageType").find("slurmdbd") == std::string_view::npos) {
    return {"accounting", Health::kWorse,
            "this cluster keeps no accounts: labs, caps and what became of forgotten jobs are not known", ""};
  }
  const Timed asked = Ask(context, QosCommand());
  if (asked.out) return {"accounting", Health::kFine, StrCat("answers in ", Took(asked.took_us)), ""};
  return {"accounting", Health::kWorse, StrCat("does not answer: ", asked.error.message),
          "jobs run without it; labs and caps are the last known ones"};
}

ClusterFinding CheckMirror(SlurmContext* context) {
  const std::string& shared = context->settings().scheduler.mirror_folder;
  const std::vector<Error> troubles = context->mirror().troubles();
  if (!troubles.empty()) {
    return {"mirror", Health::kWorse, troubles.front().message,
            "answers are shared less than they could be; see docs/formats/slurm-mirror.md"};
  }
  if (!shared.empty())
    return {"mirror", Health::kFine, StrCat("shared with other users in '", shared, "'"), ""};
  return {"mirror", Health::kFine, "shared by all your processes", ""};
}

}  // namespace

std::vector<ClusterFinding> CheckSlurmConfig(const SlurmConfig& config) {
  std::vector<ClusterFinding> findings;
  if (config.HasWord("PrivateData", "jobs")) {
    findings.push_back({"privacy", Health::kWorse,
                        "PrivateData=jobs: users see only their own jobs, and usage and why count only those",
                        "administrators see all jobs"});
  }
  const std::string_view type = config.Get("PreemptType");
  if (type.empty() || type == "preempt/none") {
    findings.push_back({"preemption", Health::kFine, "jobs are not preempted here", ""});
    return findings;
  }
  const bool warned = config.HasWord("SlurmctldParameters", "preempt_send_user_signal");
  findings.push_back(
      {"preemption", warned ? Health::kFine : Health::kWorse,
       StrCat(type, warned ? ", warned with USR1" : ": preempted jobs get TERM and no USR1 before it"),
       warned ? ""
              : "administrators: SlurmctldParameters=preempt_send_user_signal; jobs should save at TERM"});
  const auto expire = ParseInt(config.Word("AuthInfo", "cred_expire"));
  const long long seconds = expire.value_or(kDefaultCredExpire);
  if (seconds > kLongCredExpire) {
    findings.push_back({"requeue", Health::kWorse,
                        StrCat("a preempted job waits ", seconds + 1, " s before it can start again"),
                        "administrators: AuthInfo=cred_expire=10 makes that 11 s"});
  }
  if (config.Get("JobRequeue") == "0") {
    findings.push_back({"requeue", Health::kWorse, "JobRequeue=0: only jobs that ask for it are requeued",
                        "submit with --requeue"});
  }
  return findings;
}

std::vector<ClusterFinding> CheckSlurmClock(std::string_view config_text, int64_t asked_us,
                                            int64_t answered_us) {
  constexpr std::string_view kStart = "Configuration data as of ";
  if (config_text.substr(0, kStart.size()) != kStart) return {};
  const std::string_view rest = config_text.substr(kStart.size());
  const auto theirs = ParseSlurmTime(Trim(rest.substr(0, rest.find('\n'))));
  if (!theirs) return {};
  // Its time has no fraction.
  const int64_t behind = asked_us - (*theirs + 1'000'000), ahead = *theirs - answered_us;
  const int64_t skew = std::max(behind, ahead);
  if (skew <= kSkewUs) return {{"clock", Health::kFine, "the same as the controller's", ""}};
  return {{"clock", Health::kWorse,
           StrCat("the controller's clock is ", FormatDuration(skew / 1'000'000),
                  behind > ahead ? " behind" : " ahead of", " this host's"),
           "times shown are a mixture of both; munge refuses differences above 5 minutes"}};
}

std::vector<ClusterFinding> CheckSlurmSettings(const SchedulerSettings& settings,
                                               const ClusterPicture& picture, const std::string& user) {
  std::vector<ClusterFinding> findings;
  const auto bad = [&](std::string text, std::string hint) {
    findings.push_back({"settings", Health::kBroken, std::move(text), std::move(hint)});
  };
  std::vector<std::string> names;
  for (const PicturePartition& one : picture.partitions) names.push_back(one.name);
  for (const auto* list : {&settings.partitions, &settings.overcap_partitions}) {
    for (const std::string& name : *list) {
      if (!names.empty() && FindPartition(picture, name) == nullptr)
        bad(StrCat("there is no partition '", name, "'"), StrCat("partitions are: ", Join(names, ", ")));
    }
  }
  std::vector<std::string> labs;
  for (const PictureLab& lab : picture.labs) {
    if (std::find(lab.users.begin(), lab.users.end(), user) != lab.users.end()) labs.push_back(lab.name);
  }
  if (!settings.account.empty() && !labs.empty() &&
      std::find(labs.begin(), labs.end(), LabInPicture(picture, settings.account)) == labs.end())
    bad(StrCat("you are not in account '", settings.account, "'"), StrCat("yours are: ", Join(labs, ", ")));
  if (!settings.qos.empty() && !picture.qos.empty() && FindQos(picture, settings.qos) == nullptr)
    bad(StrCat("there is no QOS '", settings.qos, "'"), "sacctmgr show qos lists them");
  if (findings.empty()) {
    findings.push_back({"settings", Health::kFine,
                        StrCat(CountOf(static_cast<int64_t>(names.size()), "partition"),
                               labs.empty() ? "" : StrCat("; your accounts: ", Join(labs, ", "))),
                        ""});
  }
  return findings;
}

std::vector<ClusterFinding> CheckSlurm(SlurmContext* context) {
  std::vector<ClusterFinding> findings = CheckPrograms(*context);
  findings.push_back(CheckJobFolder(context->settings().root));
  if (!context->Program("scontrol")) return findings;
  std::optional<SlurmConfig> config;
  Append(CheckController(context, &config), &findings);
  if (!config) return findings;
  findings.push_back(CheckAccounting(context, *config));
  Append(CheckSlurmConfig(*config), &findings);
  if (Broken(findings)) return findings;
  SlurmView view(context);
  const auto picture = view.Picture({60'000'000, 60'000'000});
  if (picture) {
    Append(CheckSlurmSettings(context->settings().scheduler, *picture, UserName()), &findings);
  } else {
    findings.push_back({"controller", Health::kBroken, picture.error().message, picture.error().hint});
  }
  findings.push_back(CheckMirror(context));
  return findings;
}

}  // namespace overcap
