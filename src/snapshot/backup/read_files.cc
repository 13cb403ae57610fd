// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/read_files.h"

#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "snapshot/backup/read_worker.h"

namespace overcap {

Result<ReadReport> ReadFiles(const ReadRequest& request, std::vector<ReadJob> jobs,
                             const std::vector<std::unique_ptr<ChunkSink>>& sinks) {
  ReadReport report;
  if (jobs.empty()) return report;
  ReadQueue queue(std::move(jobs));
  std::atomic<bool> given_up = false;
  std::deque<ReadWorker> workers;
  for (const std::unique_ptr<ChunkSink>& sink : sinks)
    workers.emplace_back(request, &queue, &given_up, sink.get());

  std::mutex mutex;  // guards `first`
  std::optional<Error> first;
  const auto run = [&](ReadWorker* worker) {
    Result<void> result = worker->Run();
    if (result) return;
    given_up = true;
    const std::lock_guard lock(mutex);
    if (!first) first = std::move(result).error();
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers.size(); ++i) {
    try {
      threads.emplace_back(run, &workers[i]);
    } catch (const std::system_error&) {
      break;  // no more threads to be had; those there are do it all
    }
  }
  run(&workers[0]);
  for (std::thread& thread : threads) thread.join();
  if (first) return Fail(std::move(*first));
  for (ReadWorker& worker : workers) {
    report.problems.insert(report.problems.end(), std::make_move_iterator(worker.problems().begin()),
                           std::make_move_iterator(worker.problems().end()));
    report.bytes.push_back(std::move(worker.bytes()));
  }
  return report;
}

}  // namespace overcap
