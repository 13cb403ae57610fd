// SPDX-License-Identifier: Apache-2.0
#include "control/why_promise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "model/picture_fit.h"
#include "model/picture_use.h"
#include "sched/forecast/picture_queue.h"
#include "sched/forecast/policy_queue_rules.h"

namespace overcap {
namespace {

using forecast::Alternative;

constexpr int64_t kSecondUs = 1'000'000;

std::string WhatItHas(const PictureJob& job) {
  if (job.gpus == 0) return CountOf(job.cpus, "CPU");
  if (job.gpu_types.size() == 1 && !job.gpu_types[0].type.empty())
    return StrCat(job.gpus, "x", job.gpu_types[0].type);
  return CountOf(job.gpus, "GPU");
}

// Whether the cap of its lab keeps it waiting: the scheduler says so, or it can be seen.
bool IsCapped(const ClusterPicture& picture, const PictureJob& job) {
  if (job.wait == WaitKind::kLimit) return job.cap_of == CapOf::kLab;
  const PictureLab* lab = job.overcap ? nullptr : CappedLab(picture, job.lab);
  return lab != nullptr && GpusInTheWay(LabUse(picture, lab->name), job.yields) + job.gpus > *lab->gpu_cap;
}

// Whether what it gives back could be for the job that waits.
bool Helps(const ClusterPicture& picture, const PictureJob& run, const PictureJob& job, bool capped) {
  if (capped) {
    const PictureLab* lab = CappedLab(picture, job.lab);
    return lab != nullptr && !run.overcap && LabIsWithin(picture, run.lab, lab->name);
  }
  if (job.wait == WaitKind::kLimit && job.cap_of == CapOf::kUserInQos)
    return run.user == job.user && run.qos == job.qos;
  if (job.gpus > 0 && run.gpus == 0) return false;
  const std::vector<std::string> partitions = Split(job.partition, ',');
  const PictureNeed need = NeedOf(job);
  return std::any_of(run.nodes.begin(), run.nodes.end(), [&](const std::string& name) {
    const auto node = std::find_if(picture.nodes.begin(), picture.nodes.end(),
                                   [&](const PictureNode& one) { return one.name == name; });
    if (node == picture.nodes.end() || (need.gpus > 0 && GpusOfType(*node, need.gpu_type) == 0)) return false;
    return node->partitions.empty() ||
           std::any_of(partitions.begin(), partitions.end(), [&](const std::string& partition) {
             return std::find(node->partitions.begin(), node->partitions.end(), partition) !=
                    node->partitions.end();
           });
  });
}

struct RunEnd {
  int64_t at_us = 0;  // 0: nobody knows
  bool gives_way = false;
};

// The partition of a run, when the policy lets the job that waits have what it holds.
const PolicyPartition* YieldsTo(const Policy& policy, const PictureJob& run, const PictureJob& job) {
  const PolicyPartition* of = FindPolicyPartition(policy, run.partition);
  if (of == nullptr || (of->labmates_only && run.lab != job.lab)) return nullptr;
  const std::vector<std::string> names = Split(job.partition, ',');
  const bool yields = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(of->preempted_by.begin(), of->preempted_by.end(), name) != of->preempted_by.end();
  });
  return yields ? of : nullptr;
}

// When a run has ended for sure: its limit, or before that its quantum and grace when it gives way.
RunEnd EndOf(const PictureJob& run, const PictureJob& job, const Policy* policy, int64_t now_us) {
  RunEnd end;
  if (run.time_limit_s > 0) end.at_us = run.started_us + run.time_limit_s * kSecondUs;
  const PolicyPartition* way = policy == nullptr ? nullptr : YieldsTo(*policy, run, job);
  if (way == nullptr) return end;
  const int64_t way_us =
      std::max(now_us, run.started_us + way->quantum_s * kSecondUs) + way->grace_s * kSecondUs;
  return end.at_us > 0 && end.at_us <= way_us ? end : RunEnd{way_us, true};
}

void AddEarliestEnd(const ClusterPicture& picture, const PictureJob& job, const Policy* policy,
                    int64_t now_us, WhyAnswer* answer) {
  const PictureJob* first = nullptr;
  RunEnd earliest;
  const bool capped = IsCapped(picture, job);
  for (const PictureJob& run : picture.jobs) {
    if (!HoldsNodes(run) || run.started_us <= 0) continue;
    if (!job.id.empty() && run.gives_way_to == job.id) return;  // the reason names those that go
    const RunEnd end = EndOf(run, job, policy, now_us);
    if (end.at_us == 0 || (first != nullptr && end.at_us >= earliest.at_us)) continue;
    if (!Helps(picture, run, job, capped)) continue;
    first = &run, earliest = end;
  }
  if (first == nullptr) return;
  const std::string when =
      earliest.at_us > now_us ? StrCat(" at ", FormatWhen(earliest.at_us, now_us)) : " now";
  answer->facts.push_back(
      earliest.gives_way
          ? StrCat("the earliest to give way is ", first->user, "'s ", WhatItHas(*first), " in ",
                   first->partition, when, " (grace)")
          : StrCat("the earliest to end is ", first->user, "'s ", WhatItHas(*first), when, " (limit)"));
}

std::string ChangeText(const ClusterPicture& picture, const forecast::LiveQueue& queue, const PictureJob& job,
                       const Alternative& instead, std::string* note) {
  switch (instead.kind) {
    case Alternative::Kind::kPartition: {
      const std::string& name = queue.rules.partitions[static_cast<size_t>(instead.partition)].name;
      const PicturePartition* partition = FindPartition(picture, name);
      if (partition != nullptr && partition->preemptable) *note = "jobs there may be preempted: --requeue";
      return name;
    }
    case Alternative::Kind::kFewer:
      return StrCat(CountOf(instead.gpus, "GPU"), " instead of ", job.gpus);
    case Alternative::Kind::kType: {
      const PictureNeed need = NeedOf(job);
      const std::string& asked = need.gpu_type.empty() ? need.features : need.gpu_type;
      return StrCat(queue.rules.types[static_cast<size_t>(instead.type)], " instead of ",
                    asked.empty() ? "its type" : asked);
    }
    case Alternative::Kind::kShorter:
      return StrCat("a limit of ", FormatDuration(instead.limit_s), " instead of ",
                    FormatDuration(job.time_limit_s));
  }
  return "";
}

void TakeForecast(const ClusterPicture& picture, const PictureJob& job, const forecast::LiveQueue& queue,
                  const forecast::Forecast& told, const forecast::Correction& correction, int64_t now_us,
                  WhyAnswer* answer) {
  const auto time = [&](int64_t at_s) {
    return at_s >= forecast::kNever ? 0 : at_s <= queue.now_s ? now_us : at_s * kSecondUs;
  };
  WhyStart& start = *answer->start;
  start.now = told.now, start.replays = told.replays;
  forecast::StartTimes at = told.start;
  if (!told.now && correction.promises > 0 && at.p90_s < forecast::kNever) {
    start.correction = correction;
    start.foreseen_p50_us = time(at.p50_s), start.foreseen_p90_us = time(at.p90_s);
    at = forecast::Corrected(at, queue.now_s, correction);
  }
  start.p50_us = time(at.p50_s), start.p90_us = time(at.p90_s);
  for (forecast::Offer offer : told.sooner) {
    WhyOffer made;
    made.change = ChangeText(picture, queue, job, offer.instead, &made.note);
    made.now = offer.start.p50_s <= queue.now_s && offer.start.p90_s <= queue.now_s;
    if (!made.now) offer.start = forecast::Corrected(offer.start, queue.now_s, start.correction);
    made.start_us = time(offer.start.p50_s);
    answer->sooner.push_back(StrCat(made.change, ": ", made.now ? "now" : FormatWhen(made.start_us, now_us),
                                    made.note.empty() ? "" : StrCat(" (", made.note, ")")));
    answer->offers.push_back(std::move(made));
  }
}

// Why no replay saw it start; "": it waits for runs without a time limit.
std::string WhyNever(const ClusterPicture& picture, const PictureJob& job, const WhyAnswer& answer) {
  const PictureLab* lab = job.overcap ? nullptr : CappedLab(picture, job.lab);
  if ((lab != nullptr && job.gpus > *lab->gpu_cap) ||
      (answer.cap && job.cap_thing == CapThing::kGpus && job.gpus > answer.cap->cap))
    return "it asks for more GPUs than its cap allows";
  const PictureNeed need = NeedOf(job);
  bool ever = false, up = false;
  for (const std::string& partition : Split(job.partition, ',')) {
    const NodeFit fit = CountFits(picture, partition, need);
    ever = ever || fit.ever >= need.nodes;
    up = up || fit.up >= need.nodes;
  }
  if (!ever) return "its partition has no nodes with what it asks for";
  return up ? "" : "the nodes that it needs take no jobs now";
}

// "1.4 times".
std::string FormatTimes(double factor) {
  const auto tenths = static_cast<int64_t>(std::lround(factor * 10));
  return StrCat(tenths / 10, ".", tenths % 10, " times");
}

}  // namespace

void AddNumbers(const ClusterPicture& picture, const PictureJob& job, const Policy* policy, int64_t now_us,
                WhyAnswer* answer) {
  const bool in_line = job.wait != WaitKind::kHeld && job.wait != WaitKind::kDependency;
  if (!in_line) return;  // who ends when is no matter to it yet
  if (!answer->cap && !job.overcap) {
    if (const PictureLab* lab = CappedLab(picture, job.lab); lab != nullptr) {
      const std::string use = StrCat("lab '", lab->name, "' uses ", LabUse(picture, lab->name).gpus, " of ",
                                     *lab->gpu_cap, " GPUs");
      if (answer->text.find(use) == std::string::npos) answer->facts.push_back(use);
    }
  }
  AddEarliestEnd(picture, job, policy, now_us, answer);
}

void Promise(const ClusterPicture& picture, size_t row, const std::vector<PastRun>& past, int64_t now_us,
             const PromiseOptions& options, const forecast::Crew& crew, WhyAnswer* answer) {
  const PictureJob& job = picture.jobs[row];
  auto made = forecast::QueueOf(picture, row, now_us);
  if (!made) {
    answer->no_promise = made.error().message;
    return;
  }
  if (options.policy != nullptr) forecast::FollowPolicy(*options.policy, past, &made->queue);
  const forecast::RunTimes times(forecast::WithRunning(past, made->queue));
  forecast::ForecastOptions wanted;
  wanted.seed = options.seed, wanted.replays = options.replays, wanted.partitions = made->offered;
  const forecast::Forecast told = forecast::Foresee(made->queue, times, wanted, crew);
  answer->start.emplace();
  answer->start->past_runs = static_cast<int64_t>(times.runs());
  answer->start->own_runs = static_cast<int64_t>(times.RunsOf(job.user));
  answer->start->assumed = made->queue.assumed;
  if (told.now && job.wait == WaitKind::kLimit) {
    answer->start.reset();
    answer->no_promise = "no promise: it waits although nothing that is known here keeps it from starting";
    return;
  }
  const std::string never =
      told.now || told.start.p50_s < forecast::kNever ? "" : WhyNever(picture, job, *answer);
  TakeForecast(picture, job, made->queue, told, options.correction, now_us, answer);
  if (never.empty()) return;
  answer->start.reset();
  answer->no_promise = StrCat("no promise: ", never);
}

std::vector<std::string> StartWords(const WhyAnswer& answer, int64_t now_us) {
  std::vector<std::string> words;
  if (!answer.no_promise.empty()) words.push_back(answer.no_promise);
  if (!answer.start) return words;
  const WhyStart& start = *answer.start;
  if (start.now) {
    words.push_back("start: now, when the scheduler next looks");
  } else if (start.p50_us == 0) {
    words.push_back("start: not known: it waits for jobs that have no time limit");
  } else {
    const std::string replays = StrCat(" of ", CountOf(start.replays, "replay"), " of the queue");
    const std::string half = StrCat("start: by ", FormatWhen(start.p50_us, now_us), " in half (P50)");
    words.push_back(start.p90_us > 0 ? StrCat(half, " and by ", FormatWhen(start.p90_us, now_us),
                                              " in nine tenths (P90)", replays)
                                     : StrCat(half, replays, "; not known for nine tenths (P90)"));
  }
  if (!start.now) {
    words.push_back(start.past_runs == 0
                        ? "  run times: only time limits, no past runs are known"
                        : StrCat("  run times: learned from ", CountOf(start.past_runs, "past run"), ", ",
                                 start.own_runs, " of them by the same user"));
  }
  if (start.correction.promises > 0)
    words.push_back(StrCat("  corrected by ", CountOf(start.correction.promises, "earlier promise"),
                           ": waits are taken as ", FormatTimes(start.correction.p50), " (P50) and ",
                           FormatTimes(start.correction.p90), " (P90) those of the replays"));
  if (!start.assumed.empty()) words.push_back(StrCat("  assumed: ", Join(start.assumed, "; ")));
  return words;
}

}  // namespace overcap
