// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/log_sinks.h"

namespace overcap {

class LogSinks::Sink : public OutputSink {
 public:
  Sink(RankLogs* logs, const Clock& clock, int rank) : logs_(*logs), clock_(clock), rank_(rank) {}
  bool Ready() override { return true; }
  void Take(int stream, std::string_view bytes) override {
    logs_.Write(rank_, stream, bytes, clock_.WallUs());
  }

 private:
  RankLogs& logs_;
  const Clock& clock_;
  int rank_;
};

LogSinks::LogSinks(RankLogs* logs, const Clock& clock, std::vector<GroupMember>* members) {
  for (size_t i = 0; i < members->size(); ++i) {
    const int rank = static_cast<int>(i);
    sinks_.push_back(std::make_shared<Sink>(logs, clock, rank));
    (*members)[i].sink = sinks_.back().get();
    (*members)[i].stdout_file = logs->FileOf(rank);
  }
}

}  // namespace overcap
