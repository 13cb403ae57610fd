// SPDX-License-Identifier: Apache-2.0
// Watches the queue of the Slurm cluster of its environment through a mirror, and tells what it saw.
//   slurm_mirror_watch FOLDER SECONDS MAX_AGE     FOLDER: its user's own; times in seconds
// Prints a line of JSON: {"reads", "jobs" (at the last read), "failed", "stale", "oldest_us", "error" (the
// last)}.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "clusters/slurm/mirror.h"
#include "clusters/slurm/squeue_text.h"
#include "clusters/slurm/tool_variables.h"
#include "sys/variables.h"

namespace overcap {
namespace {

std::vector<std::string> ToolEnvironment() {
  const Variables given = Variables::OfThisProcess();
  Variables variables;
  for (const std::string& entry : given.entries()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (!IsUnwantedToolVariable(name))
      variables.Set(name, entry.substr(std::min(name.size() + 1, entry.size())));
  }
  for (const auto& [name, value] : ToolVariables("squeue")) variables.Set(name, value);
  return variables.entries();
}

struct Seen {
  int reads = 0, failed = 0, stale = 0;
  size_t jobs = 0;
  int64_t oldest_us = 0;
  std::string error;

  void Take(const Result<MirrorText>& read) {
    ++reads;
    if (!read) return Fail(read.error());
    if (read->error) ++stale, error = read->error->message;
    oldest_us = std::max(oldest_us, read->age_us.value_or(0));
    const auto queue = ParseSqueue(*read->text, read->mark);
    if (!queue) return Fail(queue.error());
    jobs = queue->size();
  }
  void Fail(const Error& why) { ++failed, error = why.message; }
};

int Watch(char** argv) {
  PosixClock clock;
  KernelRandom random;
  const std::vector<std::string> environment = ToolEnvironment();
  const auto run = [&](const std::vector<std::string>& words, std::chrono::milliseconds timeout) {
    SpawnRequest request;
    request.argv = words, request.env = environment;
    return CallTool(std::move(request), timeout, 64 << 20);
  };
  const auto sleep = [](int64_t us) { usleep(static_cast<useconds_t>(us)); };
  const auto squeue = [](std::string_view mark, int64_t) { return SqueueCommand(mark); };
  const char* conf = std::getenv("SLURM_CONF");
  const MirrorOptions options{conf == nullptr ? "" : conf, "", {}, {argv[1]}};
  Mirror mirror({&clock, &random, run, sleep}, options, {{MirrorKind::kQueue, {squeue, {}}}});
  Seen seen;
  const int64_t end_us = clock.MonotonicUs() + std::atoll(argv[2]) * 1'000'000;
  const int64_t max_age_us = std::atoll(argv[3]) * 1'000'000;
  do {
    seen.Take(mirror.Read(MirrorKind::kQueue, max_age_us));
    sleep(200'000);
  } while (clock.MonotonicUs() < end_us);
  JsonWriter json;
  json.BeginObject().Field("reads", seen.reads).Field("jobs", seen.jobs).Field("failed", seen.failed);
  json.Field("stale", seen.stale).Field("oldest_us", seen.oldest_us).Field("error", seen.error).EndObject();
  std::puts(json.Text().c_str());
  return 0;
}

}  // namespace
}  // namespace overcap

int main(int argc, char** argv) {
  return argc == 4 ? overcap::Watch(argv) : 2;
}
