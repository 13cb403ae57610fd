// SPDX-License-Identifier: Apache-2.0
// How often the promises of `why` hold on a history: `why_calibration POLICY TRACE [SCALE [EVERY [COLUMNS]]]`
// sends it through the scheduler, asks after every EVERY passes, and prints what share of P50 and P90 held.
// Not a row of ./bench: a history is needed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "control/forecast_crew.h"
#include "model/policy/policy_text.h"
#include "sched/forecast/testing/calibration.h"

namespace {

std::string Whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace overcap;
  if (argc < 3) return 2;
  const auto policy = ParsePolicy(Whole(argv[1]), argv[1]);
  if (!policy) return std::fprintf(stderr, "%s\n", policy.error().message.c_str()), 1;
  const std::string text = Whole(argv[2]);
  const auto columns = ParseColumnMap(argc > 5 ? argv[5] : "");
  const auto format = GuessTraceFormat(text);
  if (!format) return std::fprintf(stderr, "%s\n", format.error().message.c_str()), 1;
  auto trace = ReadTrace(text, *format, columns ? *columns : ColumnMap());
  if (!trace) return std::fprintf(stderr, "%s\n", trace.error().message.c_str()), 1;
  pooled::ReplayOptions options;
  options.scale = argc > 3 ? std::atof(argv[3]) : 1;
  const int every = argc > 4 ? std::atoi(argv[4]) : 500;
  for (const bool learned : {true, false}) {
    const auto found = forecast::Calibrate(*policy, *trace, options, every, learned, CrewOfThisMachine());
    if (!found) return std::fprintf(stderr, "%s\n", found.error().message.c_str()), 1;
    std::printf(
        "%s: asked %zu, judged %d, P50 held %.0f %%, P90 held %.0f %%, uncorrected %.0f %% and %.0f %%, mean "
        "wait %.0f s, P50 off by %.0f s\n",
        learned ? "learned" : "limits only", found->asked.size(), found->judged, 100 * found->p50(),
        100 * found->p90(), 100.0 * found->bare_p50_held / std::max(1, found->judged),
        100.0 * found->bare_p90_held / std::max(1, found->judged), found->wait_s, found->error_s);
  }
  return 0;
}
