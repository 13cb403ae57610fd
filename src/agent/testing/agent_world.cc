// SPDX-License-Identifier: Apache-2.0
#include "agent/testing/agent_world.h"

#include <algorithm>
#include <errno.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/store.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {

AgentWorld::AgentWorld() {
  spec.id = StrCat("ada_1700000000_", "0000000a");
  spec.user = "ada";
  spec.cluster = "local";
  spec.workdir = folder_.Path();
  options.job_dir = StrCat(Root(), "/jobs/", spec.id);
  options.store_dir = StrCat(Root(), "/store");
  options.grace_seconds = 1;
  SetEnvironment({});
}

std::string AgentWorld::Attempt() const {
  return StrCat(Job(), "/attempt-", options.attempt);
}

void AgentWorld::SetEnvironment(const std::vector<std::string>& entries) {
  std::string blob = StrCat("DIR=", Root(), '\0', "PATH=/usr/bin:/bin", '\0');
  for (const std::string& entry : entries) blob += entry + '\0';
  auto store = SnapshotStore::Open(options.store_dir);
  if (!store) return;
  if (auto id = store->PutBlob(blob)) spec.environment = *id;
}

void AgentWorld::Shell(const std::string& script) {
  spec.command = {"/bin/sh", "-c", script};
}

void AgentWorld::Save() {
  PosixFiles files;
  (void)files.MakeFolders(Attempt());
  (void)files.WriteAtomic(StrCat(Job(), "/spec.json"), SpecToJson(spec), false);
}

pid_t AgentWorld::Start(int slot) {
  AgentOptions other = options;
  other.slot = slot;
  return Start(other);
}

pid_t AgentWorld::Start(const AgentOptions& other) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const Result<int> status = RunAgent(other);
  if (!status) fprintf(stderr, "agent: %s\n", status.error().message.c_str());
  _exit(status ? *status : 1);
}

int AgentWorld::Wait(pid_t agent) {
  int status = 0;
  if (!Eventually([&] { return waitpid(agent, &status, WNOHANG) != 0; })) {
    kill(agent, SIGKILL);
    waitpid(agent, nullptr, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string AgentWorld::Run() {
  Save();
  const int status = Wait(Start());
  return status == 0 ? End() : StrCat("agent ended with ", status);
}

AgentReport AgentWorld::Report(int slot) const {
  return ParseAgentReport(ReadWhole(StrCat(Attempt(), "/agent-", slot, ".jsonl")));
}

std::string AgentWorld::End(int slot) const {
  const AgentReport report = Report(slot);
  return report.end ? Describe(*report.end) : "no end";
}

std::string AgentWorld::File(const std::string& name) const {
  return ReadWhole(StrCat(Attempt(), "/", name));
}

std::string AgentWorld::Scratch(const std::string& name) const {
  return ReadWhole(StrCat(Root(), "/", name));
}

bool AgentWorld::Appears(const std::string& scratch_name) const {
  const std::string path = StrCat(Root(), "/", scratch_name);
  return Eventually([&] { return access(path.c_str(), F_OK) == 0; });
}

bool AgentWorld::IsGone(const std::string& pid_file) const {
  const auto pid = ParseInt(Trim(Scratch(pid_file)));
  return pid && !Identify(static_cast<pid_t>(*pid));
}

std::string Describe(const Ending& ending) {
  std::string out = StrCat(JobStateName(ending.state), " ", ending.exit_status, " ", ending.signal);
  if (ending.first_failed_rank >= 0) out += StrCat(" rank ", ending.first_failed_rank);
  return ending.reason.empty() ? out : StrCat(out, ": ", ending.reason);
}

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    poll(nullptr, 0, 5);
  }
  return false;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace overcap
