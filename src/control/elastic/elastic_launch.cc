// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/elastic_launch.h"

#include <algorithm>

#include "base/text.h"
#include "control/elastic/elastic_agent.h"
#include "control/elastic/elastic_ranks.h"
#include "control/launch_folder.h"
#include "elastic/etcd/etcd_rendezvous.h"
#include "elastic/host/host_rendezvous.h"
#include "elastic/host/rendezvous_key.h"
#include "launch/detect/gpu_probe.h"
#include "launch/detect/programs.h"
#include "launch/rank_error.h"
#include "launch/torch_run.h"
#include "sys/devices.h"
#include "sys/inherited_children.h"
#include "sys/own_host_name.h"

namespace overcap {
namespace {

std::string FolderOfRendezvous(const LaunchWorld& world) {
  const std::string_view folder = world.variables.Get("OVERCAP_RDZV_FOLDER");
  return folder.empty() ? world.root + "/elastic" : std::string(folder);
}

// The secret of a group that meets at a port; where its user set none, that of a file.
Result<std::string> SecretOf(const LaunchWorld& world, ElasticOptions* options) {
  const std::string_view given = world.variables.Get("OVERCAP_RDZV_KEY");
  if (options->place.kind != elastic::RendezvousPlace::Kind::kTcp || options->open || !given.empty())
    return std::string(given);
  const std::string folder = FolderOfRendezvous(world);
  options->key_file = elastic::KeyFileOf(folder, options->place.id);
  return elastic::SharedKey(folder, options->place.id, &world.random);
}

Result<std::unique_ptr<elastic::Rendezvous>> MakeRendezvous(const ElasticOptions& options, std::string secret,
                                                            const LaunchWorld& world,
                                                            const std::string& agent) {
  const elastic::ElasticTimes times{options.ttl_us};
  const Variables& variables = world.variables;
  if (options.place.kind == elastic::RendezvousPlace::Kind::kEtcd) {
    elastic::EtcdRendezvousOptions etcd;
    etcd.etcd.endpoints = options.place.endpoints;
    etcd.etcd.tls = options.place.tls;
    etcd.etcd.user = variables.Get("OVERCAP_ETCD_USER");
    etcd.etcd.password = variables.Get("OVERCAP_ETCD_PASSWORD");
    etcd.etcd.certificates = {std::string(variables.Get("OVERCAP_ETCD_CA")),
                              std::string(variables.Get("OVERCAP_ETCD_CERT")),
                              std::string(variables.Get("OVERCAP_ETCD_KEY"))};
    etcd.agent = agent;
    etcd.address = options.local_addr;
    etcd.times = times;
    OC_TRY(made,
           elastic::EtcdRendezvous::Make(options.place, std::move(etcd), world.clock, world.random.Next()));
    return std::unique_ptr<elastic::Rendezvous>(std::move(made));
  }
  elastic::HostRendezvousOptions host;
  host.folder = FolderOfRendezvous(world);
  host.agent = agent;
  host.secret = std::move(secret);
  host.times = times;
  OC_TRY(made, elastic::HostRendezvous::Make(options.place, std::move(host), world.clock, &world.random));
  return std::unique_ptr<elastic::Rendezvous>(std::move(made));
}

// What ranks must not see: by these one could speak for the agent, or be taken for one.
std::vector<std::string> RankEnvironment(const Variables& given) {
  Variables variables = given;
  for (const std::string_view name : {"OVERCAP_ETCD_USER", "OVERCAP_ETCD_PASSWORD", "OVERCAP_RDZV_KEY",
                                      "OVERCAP_RDZV_HEAD", "OVERCAP_RDZV_FOLDER", "OVERCAP_GROUP_EVENTS"}) {
    variables.Remove(name);
  }
  return variables.entries();
}

LaunchFacts FactsOf(const ElasticOptions& options, const LaunchWorld& world, const std::string& id,
                    const std::string& host) {
  LaunchFacts facts;
  facts.id = id;
  facts.command = options.command;
  facts.folder = world.folder;
  facts.launcher.flavour = Flavour::kLocal;
  facts.plan.world_size = options.ranks;
  facts.plan.hosts = {{host, 0, options.ranks, 0}};
  facts.allocation.this_host = host;
  facts.started_us = world.clock.WallUs();
  return facts;
}

// The rank that failed first, when it was one of this node.
const RankFailure* FailedHere(const ElasticEnd& end) {
  if (!end.rank_failed || end.attempts.empty() || !end.attempts.back().end.first) return nullptr;
  return &*end.attempts.back().end.first;
}

void HandErrorOn(const ElasticEnd& end, const std::string& folder, const LaunchWorld& world,
                 LaunchVoice* voice) {
  const RankFailure* failed = FailedHere(end);
  if (failed == nullptr) return;
  const std::string attempt = StrCat(folder, "/attempt-", end.attempts.back().attempt);
  const auto handed = overcap::HandErrorOn(ErrorFileOf(attempt, failed->rank), end.status,
                                           world.variables.Get("TORCHELASTIC_ERROR_FILE"));
  if (!handed) voice->Warn(handed.error().message);
}

void Tell(const ElasticEnd& end, const ElasticOptions& options, const std::string& folder,
          LaunchVoice* voice) {
  if (end.status == 0 && end.attempts.empty())
    voice->Say("overcap: the job has ended, and this node ran no rank of it");
  if (end.status == 0) return;
  LaunchFailure failure;
  failure.cause = end.rank_failed ? "rank_failed" : (end.status > 128 ? "cancelled" : "host_failed");
  failure.attempt = end.attempts.empty() ? 0 : end.attempts.back().attempt;
  failure.line = end.message;
  failure.last_lines = end.traceback;
  if (const RankFailure* failed = FailedHere(end))
    failure.shown = options.views.empty() &&
                    (ShowsAllRanks(options.tee) || (options.tee == Tee::kRank0 && failed->rank == 0));
  failure.logs = folder;
  voice->Failure(failure);
}

}  // namespace

int GpusHere(const Variables& variables, bool intel) {
  const auto visible = VisibleGpusOf(variables);
  if (visible && (!intel || visible->variable == "ZE_AFFINITY_MASK")) return visible->count;
  const size_t nvidia = intel ? 0 : DetectMachine().gpus.size();
  if (nvidia > 0) return static_cast<int>(nvidia);
  RealPrograms programs(variables);
  const ProbedGpus probed = ProbeGpus(programs);
  return intel && probed.how != "xpu-smi" ? 0 : std::max(0, probed.count);
}

Result<int> RunElasticLaunch(ElasticOptions options, const LaunchWorld& world, LaunchVoice* voice) {
  const std::string id = MakeLaunchId(world.clock.WallUs(), static_cast<uint32_t>(world.random.Next()));
  const std::string agent = StrCat(id, "-", world.random.Next() % 1'000'000);
  if (options.place.id.empty()) options.place.id = agent;
  if (options.run_id.empty()) options.run_id = options.place.id;
  OC_TRY(guard, RightGuard::Make(world.clock));
  const auto leave_alone = InheritedChildren();  // the guard among them
  SupervisorTimes times;
  times.grace = options.grace_us;
  const SupervisorSignals signals{.hangup_cancels = true, .second_kills = true, .cancel = options.signals};
  OC_TRY(supervisor, Supervisor::Make(world.clock, times, signals));
  OC_TRY(secret, SecretOf(world, &options));
  OC_TRY(rendezvous, MakeRendezvous(options, std::move(secret), world, agent));
  OC_TRY(socket, RankSocket::Make(StrCat("overcap-elastic-", agent)));
  OC_TRY(folder, LaunchFolder::Make(world.root, options.logs, id, options.logs_below));
  const std::string host = OwnHostName();
  if (const auto kept = folder.KeepFacts(FactsOf(options, world, id, host)); !kept) {
    folder.Remove();
    return Fail(kept.error());
  }
  voice->Note(StrCat("logs in ", folder.path()));
  ElasticAgent run({options, world, *voice, folder, *supervisor, *guard, *rendezvous, socket, leave_alone,
                    RankEnvironment(world.variables), agent, host});
  auto end = run.Run();
  if (!end) {
    (void)folder.KeepResult(ExitStatus(end.error().code), {});
    return Fail(std::move(end).error());
  }
  if (const auto kept = folder.KeepResult(end->status, end->attempts); !kept)
    voice->Warn(kept.error().message);
  HandErrorOn(*end, folder.path(), world, voice);
  Tell(*end, options, folder.path(), voice);
  return end->status;
}

}  // namespace overcap
