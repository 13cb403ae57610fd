// SPDX-License-Identifier: Apache-2.0
#include "control/why.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/picture_words.h"

namespace overcap::cli {
namespace {

constexpr int64_t kNewEnoughUs = 5'000'000;

void Print(World& world, const JobRecord& record, const WhyAnswer& answer, const std::string& notes) {
  Output& out = world.out();
  out.Line(StrCat("job ", out.Paint(Style::kBold, record.spec.id), ": ", answer.text,
                  answer.reason.empty() ? "" : StrCat(" (", answer.reason, ")")));
  for (const std::string& fact : answer.facts) out.Line("  " + fact);
  if (answer.estimated_start_us > 0) {
    const int64_t in_s = (answer.estimated_start_us - world.clock().WallUs()) / 1'000'000;
    out.Line(StrCat("the scheduler expects to start it at ", FormatTimeLocal(answer.estimated_start_us),
                    ", in ", FormatDuration(std::max<int64_t>(1, in_s))));
  }
  if (!answer.sooner.empty()) out.Line(out.Paint(Style::kBold, "sooner:"));
  for (const std::string& way : answer.sooner) out.Line("  " + way);
  out.Write(notes);
}

Result<int> Run(World& world, const Args& args) {
  OC_TRY(records, QueryJobs(world, args.words()));
  const JobRecord& record = records.front();
  const int64_t now_us = world.clock().WallUs();
  std::optional<ClusterPicture> picture;
  OC_TRY(cluster, world.GetCluster());
  if (!IsFinal(record.state) && HasView(*cluster)) {
    OC_TRY(seen, Look(world, {kNewEnoughUs, kNewEnoughUs}));
    picture = std::move(seen);
  }
  const WhyAnswer answer = ExplainJob(record, picture ? &*picture : nullptr, now_us);
  if (world.out().json()) {
    world.out().Json(WhyToJson(record, answer));
  } else {
    Print(world, record, answer, picture ? PictureNotes(*picture, now_us, false) : "");
  }
  return 0;
}

}  // namespace

constinit const Command kWhy = {
    .name = "why",
    .summary = "why a job waits, or how it ended; what would start sooner",
    .usage = "JOB",
    .min_words = 1,
    .max_words = 1,
    .run = Run,
    .job_words = true,
};

}  // namespace overcap::cli
