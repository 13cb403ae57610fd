// SPDX-License-Identifier: Apache-2.0
#include "control/submit.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "clusters/cluster_view.h"
#include "control/capture_limit.h"
#include "control/mounts/mounts_of_job.h"
#include "control/stored/stored_job.h"
#include "control/stores/job_stores.h"
#include "control/submitter_environment.h"
#include "model/job_id.h"
#include "snapshot/code_tree.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/user.h"

namespace overcap {
namespace {

// The request, checked, with nothing stored yet: the spec names the folder as it is.
struct Draft {
  JobSpec spec;
  Workdir workdir;
  std::vector<std::string> variables;
  std::string script;  // the batch script, its path in the folder; "": none
  std::vector<std::string> notes = {};
};

std::string NameOf(std::string_view variable) {
  return std::string(variable.substr(0, variable.find('=')));
}

// A default that a cluster has no use for is none; what was asked for is refused later.
void SetRequeue(const JobRequest& request, const JobDefaults& defaults, const Capabilities& can,
                JobSpec* spec) {
  spec->requeue = request.requeue.value_or(defaults.requeue);
  spec->requeue_on_timeout =
      request.requeue_on_timeout.value_or(defaults.requeue_on_timeout && can.timeout_requeue);
  const bool warned = can.warning && (spec->requeue || spec->requeue_on_timeout);
  spec->warn_seconds = request.warn_seconds.value_or(warned ? defaults.warn_seconds : 0);
  spec->warn_shell = request.warn_shell;
}

JobSpec SpecOf(const JobRequest& request, const JobDefaults& defaults, const SubmitTools& tools) {
  JobSpec spec;
  spec.submitted_us = tools.clock.WallUs();
  spec.id =
      MakeJobId(request.user, spec.submitted_us / 1'000'000, static_cast<uint32_t>(tools.random.Next()));
  spec.user = request.user;
  spec.cluster = tools.cluster.Name();
  spec.store = tools.via;
  spec.name = request.name;
  spec.command = request.command;
  spec.placement = request.placement;
  spec.array = request.array;
  spec.sweep = request.sweep;
  spec.batch = !request.batch_script.empty();
  spec.source = request.folder;
  spec.after = request.after;
  spec.hold = request.hold;
  spec.cpus_asked = request.cpus.has_value() || defaults.cpus > 0;
  spec.max_restarts = request.max_restarts.value_or(defaults.max_restarts);
  spec.priority = request.priority;
  spec.umask = OwnUmask(), spec.nofile = OwnFileLimit();
  spec.logs_max = tools.config.logs.max_bytes;
  for (const std::string& variable : request.env) spec.env_names.push_back(NameOf(variable));
  return spec;
}

// The command must be a program; one that is no part of the code may be on the machines of the cluster only.
Result<void> CheckProgram(const Capabilities& can, Draft* draft_out) {
  Draft& draft = *draft_out;
  if (draft.spec.command.empty()) {
    return Fail(ErrorCode::kUsage, "there is no command to run", "overcap submit CMD...");
  }
  auto program = ResolveProgram(draft.spec.command[0], PathOf(draft.variables), draft.workdir.path);
  if (program) return {};
  Error error = std::move(program).error();
  const std::string& word = draft.spec.command[0];
  const bool of_code = word.find('/') != std::string::npos && !word.starts_with('/');
  if (error.code == ErrorCode::kNotFound && can.max_nodes != 1 && !of_code) {
    draft.notes.push_back(StrCat("command ", Quoted(word),
                                 " is not on this machine; the job fails where its node has none either"));
    return {};
  }
  const bool denied = error.code == ErrorCode::kDenied;
  return Fail(ErrorCode::kUsage, denied ? error.message + ": no permission" : error.message, error.hint);
}

Result<void> CheckCapabilities(const JobSpec& spec, const Capabilities& can, const std::string& cluster) {
  const auto cannot = [&](std::string_view what) {
    return Fail(ErrorCode::kUsage, StrCat("cluster '", cluster, "' cannot ", what));
  };
  if (spec.hold && !can.hold) return cannot("hold jobs");
  if (!spec.array.empty() && !can.array) return cannot("run arrays");
  if (!spec.after.empty() && !can.dependencies) return cannot("start jobs after others");
  if (spec.warn_seconds > 0 && !can.warning) return cannot("warn jobs before their time limit");
  if (!spec.store.empty() && !can.stores) return cannot("run jobs through a store");
  if (spec.requeue_on_timeout && !can.timeout_requeue) return cannot("requeue jobs at their time limit");
  if (can.placement || spec.placement == Placement{}) return {};
  return Fail(ErrorCode::kUsage,
              StrCat("cluster '", cluster, "' has no partitions, accounts, QOS or nodes to choose"),
              "-c NAME names another cluster, 'overcap cluster list' those there are");
}

// Only a copy of the code can be given links: a folder that the job runs in itself is the user's own.
Result<void> SetMounts(const JobRequest& request, const Config& config, Draft* draft) {
  const auto cluster = config.clusters.find(draft->spec.cluster);
  const ClusterConfig standard;
  const ClusterConfig& of_cluster = cluster == config.clusters.end() ? standard : cluster->second;
  const StoreBook book{config.stores, Variables(draft->variables), request.folder};
  OC_TRY(job, MountsOfJob({config.mounts, of_cluster.mounts, request.mounts}, book));
  if (job.mounts.empty()) return {};
  if (!draft->workdir.inside) {
    const std::string where =
        StrCat("the job runs in '", draft->workdir.path, "' itself, not in a copy of its code");
    if (!request.mounts.empty()) return Fail(ErrorCode::kUsage, StrCat("--mount: ", where));
    draft->notes.push_back(StrCat("nothing is mounted: ", where));
    return {};
  }
  draft->spec.mounts = std::move(job.mounts);
  draft->spec.mounts_at = of_cluster.mounts_at;
  draft->notes.insert(draft->notes.end(), job.notes.begin(), job.notes.end());
  for (const MountSpec& mount : draft->spec.mounts) {
    if (IsLinkedFolder(mount) && !PosixFiles().Exists(mount.store))
      draft->notes.push_back(
          StrCat("mount '", mount.name, "': there is no folder '", ToUtf8(mount.store), "' on this machine"));
  }
  return {};
}

Result<Draft> MakeDraft(const JobRequest& request, const SubmitTools& tools) {
  const Config config = ConfigFor(tools.config, tools.cluster.Name());
  Draft draft{.spec = SpecOf(request, config.defaults, tools),
              .workdir = {},
              .variables = {},
              .script = request.batch_script};
  // Before everything else: what the cluster begins now goes on beside it.
  if (tools.submit_follows) tools.cluster.Expect({draft.spec, ""});
  const Capabilities can = tools.cluster.GetCapabilities();
  OC_TRY(resources, ChooseResources(request, config, can.nodes));
  SetRequeue(request, config.defaults, can, &draft.spec);
  draft.spec.resources = std::move(resources);
  OC_TRY(variables, SubmitterEnvironment(request.environment, request.env));
  draft.variables = std::move(variables);
  OC_TRY(workdir, FindWorkdir(request));
  draft.workdir = std::move(workdir);
  draft.spec.workdir = draft.workdir.path;
  OC_TRY_VOID(SetMounts(request, config, &draft));
  OC_TRY_VOID(CheckProgram(can, &draft));
  OC_TRY_VOID(CheckCapabilities(draft.spec, can, tools.cluster.Name()));
  OC_TRY_VOID(tools.cluster.Plan(draft.spec));
  return draft;
}

// The program's path in the captured folder; "" when it is not meant to come from there.
std::string CapturedProgram(const Draft& draft) {
  const std::string& word = draft.spec.command[0];
  if (word.starts_with('/') || word.find('/') == std::string::npos) return {};
  const std::string path = (std::filesystem::path(draft.workdir.inner) / word).lexically_normal().string();
  return path.starts_with("../") ? "" : path;
}

// Whether the path is in the code, or a link in it leads to whatever was captured.
Result<bool> LeadsSomewhere(const CodeTree& code, const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    OC_TRY(above, code.Find(path.substr(0, slash)));
    if (!above) return false;
    if (above->kind == EntryKind::kLink) return true;
  }
  OC_TRY(entry, code.Find(path));
  return entry.has_value();
}

// A program that ignore files leave out would be missing when the job starts.
Result<void> CheckCaptured(const Draft& draft, const SnapshotStore& store, const std::string& tree) {
  const std::string path = draft.script.empty() ? CapturedProgram(draft) : draft.script;
  if (path.empty()) return {};
  OC_TRY(there,
         WithCodeTree(store, tree, [&](const CodeTree& code, bool) { return LeadsSomewhere(code, path); }));
  if (there) return {};
  const std::string what =
      draft.script.empty() ? StrCat("command '", draft.spec.command[0], "'") : StrCat("script '", path, "'");
  return Fail(ErrorCode::kUsage, StrCat(what, " is not in the captured code"),
              "an ignore file leaves it out: take it in with a line '!" + path + "' in .overcapignore");
}

// What of the code keeps a link from taking the path's place: something that is no folder above it, or there
// anything but a link or an empty folder. "": nothing does.
Result<std::string> InTheWayOfLink(const CodeTree& code, const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    OC_TRY(above, code.Find(path.substr(0, slash)));
    if (above && above->kind != EntryKind::kFolder) return path.substr(0, slash);
  }
  OC_TRY(entry, code.Find(path));
  if (!entry || entry->kind == EntryKind::kLink) return "";
  if (entry->kind != EntryKind::kFolder) return path;
  OC_TRY(entries, code.Entries());
  const bool full =
      std::ranges::any_of(entries, [&](const CodeEntry& each) { return each.path.starts_with(path + "/"); });
  return full ? path : "";
}

Result<void> CheckMountPlaces(const Draft& draft, const SnapshotStore& store, const std::string& tree) {
  for (const MountSpec& mount : draft.spec.mounts) {
    OC_TRY(there, WithCodeTree(store, tree,
                               [&](const CodeTree& code, bool) { return InTheWayOfLink(code, mount.at); }));
    if (there.empty()) continue;
    return Fail(ErrorCode::kUsage,
                there == mount.at
                    ? StrCat("mount '", mount.name, "': '", there, "' is in the captured code already")
                    : StrCat("mount '", mount.name, "': 'at' is '", mount.at, "', but '", there,
                             "' of the captured code is no folder"),
                StrCat("choose another 'at', or leave it out of the code with a line '/", there,
                       "' in .overcapignore"));
  }
  return {};
}

std::vector<std::string> Notes(const Draft& draft, std::vector<std::string> notes) {
  notes.insert(notes.end(), draft.notes.begin(), draft.notes.end());
  if (!draft.workdir.inside) {
    notes.push_back(
        StrCat("'", draft.workdir.path,
               "' is outside of the current folder: the job runs there, as it is then; no code is captured"));
  } else if (draft.spec.command[0].starts_with(draft.spec.source + "/")) {
    notes.push_back(StrCat("'", draft.spec.command[0],
                           "' names the file itself, not its captured copy; a relative path would"));
  }
  return notes;
}

std::string RootOf(const std::string& store) {
  return store.substr(0, store.rfind('/'));
}

// The first place that is written to: when that fails the user may have named it wrongly.
Result<SnapshotStore> OpenCodeStore(const std::string& folder, const JobStore& via, const Clock& clock) {
  if (!via.empty()) return OpenCodeStoreOf(via, RootOf(folder), clock);
  auto store = SnapshotStore::Open(folder, {.clock = &clock});
  if (!store && store.error().hint.empty()) store.error().hint = kRootHint;
  return store;
}

}  // namespace

Result<void> CheckAfter(Cluster& cluster, const std::vector<Dependency>& after) {
  std::vector<std::string> ids;
  for (const Dependency& dependency : after) {
    if (!dependency.any_end) ids.push_back(dependency.job_id);
  }
  if (ids.empty()) return {};
  OC_TRY(records, cluster.Query(ids));
  for (const JobRecord& record : records) {
    if (!IsFinal(record.state) || record.state == JobState::kSucceeded) continue;
    return Fail(ErrorCode::kConflict,
                StrCat("job '", record.spec.id, "' has ended already (", JobStateName(record.state),
                       "), so a job after its success would never start"),
                StrCat("--after-any ", record.spec.id, " starts it however that one has ended"));
  }
  return {};
}

std::vector<std::string> AdviceFor(Cluster& cluster, const JobSpec& spec) {
  ClusterView* view = cluster.View();
  return view != nullptr ? view->Advise(spec) : std::vector<std::string>();
}

Result<PreparedJob> PrepareJob(const JobRequest& request, const SubmitTools& tools) {
  OC_TRY(draft, MakeDraft(request, tools));
  OC_TRY(store, OpenCodeStore(tools.store, tools.via, tools.clock));
  PreparedJob prepared;
  if (draft.workdir.inside) {
    const auto limit = CaptureLimitOf(request.folder, Variables(request.environment), tools.config);
    OC_TRY(capture, Capture(store, request.folder,
                            {.progress = tools.progress, .limit = limit, .root = RootOf(tools.store)}));
    OC_TRY_VOID(CheckCaptured(draft, store, capture.tree_id));
    OC_TRY_VOID(CheckMountPlaces(draft, store, capture.tree_id));
    draft.spec.snapshot = capture.tree_id;
    draft.spec.workdir = draft.workdir.inner;
    prepared.capture = std::move(capture);
  }
  if (!tools.via.empty()) draft.variables = WithoutStoreKeys(draft.variables, request.env);
  OC_TRY(environment, store.PutBlob(EnvironmentBlob(draft.variables)));
  draft.spec.environment = std::move(environment);
  OC_TRY(plan, tools.cluster.Plan(draft.spec));
  prepared.plan = std::move(plan);
  if (tools.submit_follows) OC_TRY_VOID(PutStoredSpec(prepared.plan.spec));
  prepared.notes = Notes(draft, request.notes);
  prepared.notes.insert(prepared.notes.end(), prepared.plan.notes.begin(), prepared.plan.notes.end());
  return prepared;
}

Result<CaptureReport> CaptureFolder(const std::string& folder, const std::string& store_folder,
                                    const Clock& clock, const CaptureOptions& options) {
  OC_TRY(store, OpenCodeStore(store_folder, {}, clock));
  return Capture(store, folder, options);
}

std::string CaptureWarning(const CaptureReport& capture, const Config& config) {
  const bool many = capture.files > config.code.max_files_warn;
  if (!many && capture.bytes <= config.code.max_bytes_warn) return {};
  const std::vector<PathSize>& folders = many ? capture.largest.crowded_folders : capture.largest.folders;
  std::vector<std::string> named;
  for (const PathSize& folder : folders) {
    named.push_back(
        StrCat("'", folder.path, "' (", CountOf(folder.files, "file"), ", ", FormatBytes(folder.bytes), ")"));
  }
  if (!many && named.empty()) {
    for (const PathSize& file : capture.largest.files) {
      named.push_back(StrCat("'", file.path, "' (", FormatBytes(file.bytes), ")"));
    }
  }
  return StrCat("the captured code has ", CountOf(capture.files, "file"), ", ", FormatBytes(capture.bytes),
                "; the largest: ", Join(named, ", "), ". Name in .overcapignore what the job does not need");
}

}  // namespace overcap
