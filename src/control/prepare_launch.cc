// SPDX-License-Identifier: Apache-2.0
#include "control/prepare_launch.h"

#include <algorithm>
#include <cctype>
#include <unistd.h>

#include "base/text.h"
#include "control/detect_here.h"
#include "launch/compose/choose_launcher.h"
#include "launch/detect/host_name.h"
#include "launch/local/local_cpus.h"
#include "launch/ssh/ssh_runner.h"
#include "sys/devices.h"

namespace overcap {
namespace {

// Variables that tell about this shell or this host, not about what the user wants the ranks to see.
bool StaysHere(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "_",    "PWD",       "OLDPWD",     "SHLVL",   "HOSTNAME",      "TERM",       "TERMCAP",       "DISPLAY",
      "TMUX", "TMUX_PANE", "XAUTHORITY", "SSH_TTY", "SSH_AUTH_SOCK", "SSH_CLIENT", "SSH_CONNECTION"};
  constexpr std::string_view kFamilies[] = {"OMPI_", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "PALS_"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [name](std::string_view family) { return name.starts_with(family); });
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// What Open MPI has to be told to pass on; names only, so that no value stands on a command line.
std::vector<std::string> ExportedNames(const std::vector<std::string>& env) {
  std::vector<std::string> names;
  for (const std::string& entry : env) {
    const std::string name = entry.substr(0, entry.find('='));
    if (IsPlainName(name) && !StaysHere(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> RankBase(const LaunchWorld& world, const Allocation& allocation,
                                  const std::optional<SiteFacts>& site) {
  Variables variables = world.variables;
  for (const auto& [name, value] : allocation.restored) variables.Set(name, value);
  if (site) {
    for (const auto& [name, value] : site->env) {
      if (!variables.Has(name)) variables.Set(name, value);
    }
  }
  return variables.entries();
}

bool PlanIsAsked(const LaunchOptions& options) {
  const PlanRequest& plan = options.plan;
  return plan.ranks != 0 || plan.per_node != 0 || plan.nodes != 0 || plan.spare_nodes != 0 ||
         !options.hostfile.empty();
}

Result<Launcher> Choose(const LaunchOptions& options, const LaunchWorld& world,
                        const PreparedLaunch& prepared) {
  ChoiceInputs inputs;
  inputs.asked = options.launcher;
  inputs.scheduler = prepared.allocation.scheduler;
  inputs.in_job = prepared.allocation.in_job;
  inputs.hosts = static_cast<int>(prepared.plan.hosts.size());
  inputs.this_host_only =
      inputs.hosts == 1 && IsHostItself(prepared.plan.hosts[0].name, prepared.allocation.this_host);
  if (prepared.site) {
    inputs.site_launcher = prepared.site->launcher;
    inputs.site_program = prepared.site->launcher_program;
  }
  RealPrograms programs(world.variables);
  return ChooseLauncher(inputs, programs);
}

// What the launcher that was chosen cannot do.
Result<void> CheckLauncher(const LaunchOptions& options, const PreparedLaunch& prepared) {
  const Flavour flavour = prepared.launcher.flavour;
  if (StartsItself(flavour) && !options.launcher_args.empty()) {
    return Fail(
        ErrorCode::kUsage,
        StrCat("--launcher-args: there is no launcher to hand them to, Overcap itself starts the ranks (",
               FlavourName(flavour), ": ", prepared.launcher.reason, ")"),
        "leave them out, or add --launcher mpiexec");
  }
  const auto& outside = prepared.allocation.outside_job;
  if (flavour == Flavour::kSrun && !outside.empty()) {
    return Fail(ErrorCode::kUsage,
                StrCat("host '", outside[0], "' of host file '", ToUtf8(options.hostfile), "' is not in job ",
                       prepared.allocation.job_id),
                "overcap env shows the hosts of the job; --launcher ssh reaches others");
  }
  return {};
}

}  // namespace

Result<LaunchCommand> ComposeFor(const PreparedLaunch& prepared, const LaunchOptions& options,
                                 const LaunchWorld& world, const std::string& hostfile, bool linked) {
  LaunchRequest request;
  request.linked = linked;
  request.launcher = prepared.launcher;
  request.plan = prepared.plan;
  request.hosts_chosen = prepared.hosts_chosen;
  request.cpu_bind = prepared.cpu_bind;
  if (prepared.site) request.launcher_args = prepared.site->launcher_args;
  request.launcher_args.insert(request.launcher_args.end(), options.launcher_args.begin(),
                               options.launcher_args.end());
  request.hostfile = hostfile;
  request.as_root = geteuid() == 0;
  request.oversubscribe = prepared.plan.MostPerHost() > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  request.gpus_from_scheduler = prepared.allocation.gpus_from_scheduler;
  request.exported = ExportedNames(prepared.env);
  request.rank_command = {world.binary, "rank", "--"};
  request.rank_command.insert(request.rank_command.end(), options.command.begin(), options.command.end());
  return ComposeLaunch(request);
}

Result<void> FillOwnSpawner(const PreparedLaunch& prepared, const LaunchWorld& world, Attempt* attempt) {
  const Flavour flavour = prepared.launcher.flavour;
  if (!StartsItself(flavour)) return {};
  attempt->cpu_bind = prepared.cpu_bind;
  if (flavour == Flavour::kLocal) {  // other hosts know themselves which processors they have
    OC_TRY_VOID(CpusPerLocalRank(prepared.cpu_bind, prepared.plan.MostPerHost(), AffinityCpus()));
  }
  attempt->ssh_options =
      prepared.site && prepared.site->ssh_options ? *prepared.site->ssh_options : DefaultSshOptions();
  if (world.variables.Has("OVERCAP_SSH")) attempt->ssh_program = world.variables.Get("OVERCAP_SSH");
  return {};
}

Result<PreparedLaunch> PrepareLaunch(const LaunchOptions& options, const LaunchWorld& world) {
  PreparedLaunch prepared;
  OC_TRY(here, DetectHere(world, options.hostfile));
  prepared.allocation = std::move(here.allocation);
  prepared.site = std::move(here.site);
  prepared.env = RankBase(world, prepared.allocation, prepared.site);
  if (!prepared.allocation.started_by.empty() && PlanIsAsked(options)) {
    return Fail(
        ErrorCode::kUsage,
        StrCat("a launcher has already started this process as a rank (", prepared.allocation.started_by,
               "): the number of ranks and their hosts cannot be changed any more"),
        "overcap launch CMD... without -n, --ppn, --nnodes, --spare-nodes and --hostfile");
  }
  if (!prepared.allocation.started_by.empty()) return prepared;  // there is nothing to plan: it is a rank
  OC_TRY(plan, PlanRanks(prepared.allocation.hosts, options.plan));
  prepared.plan = std::move(plan);
  prepared.hosts_chosen = !options.hostfile.empty() || options.plan.spare_nodes > 0 ||
                          prepared.plan.hosts.size() < prepared.allocation.hosts.size();
  OC_TRY(launcher, Choose(options, world, prepared));
  prepared.launcher = std::move(launcher);
  OC_TRY_VOID(CheckLauncher(options, prepared));
  prepared.cpu_bind = options.cpu_bind;
  if (prepared.cpu_bind.empty() && prepared.site) prepared.cpu_bind = prepared.site->cpu_bind;
  OC_TRY(composed, ComposeFor(prepared, options, world, "HOSTFILE", false));
  prepared.command = std::move(composed);
  Attempt trial;  // what it would refuse is refused now, before anything is started
  OC_TRY_VOID(FillOwnSpawner(prepared, world, &trial));
  if (prepared.launcher.flavour == Flavour::kSsh) {
    prepared.ssh = std::move(trial.ssh_options);
    prepared.ssh.insert(prepared.ssh.begin(), trial.ssh_program);
  }
  return prepared;
}

}  // namespace overcap
