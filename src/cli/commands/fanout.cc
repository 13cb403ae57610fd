// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <sys/stat.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"
#include "cli/commands/workspace_words.h"
#include "control/fanout/bring_source.h"
#include "control/fanout/fanout_hosts.h"
#include "sys/own_host_name.h"

namespace overcap::cli {
namespace {

constexpr Flag kFanoutFlags[] = {
    {"--to", "", "DST", "the folder on each node; ~ and $VARIABLES are the node's own"},
    {"--hosts", "", "HOSTS", "a host file, or node1,node[3-5]; by default the hosts of the job you are in"},
    {"--force", "", "", "also into a folder that holds something else, which is then replaced"},
    {"--ssh-only", "", "",
     "what this machine sends goes through ssh, encrypted, also to nodes that are near"},
    {"--no-fix", "", "", "leave paths in scripts and pyvenv.cfg as they are"},
};

constexpr FlagSynonym kSynonyms[] = {{"--hostfile", "--hosts"}, {"--dest", "--to"}};

constexpr size_t kSomeProblems = 5;

bool IsFolder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// "train@latest": a workspace and one of its snapshots.
bool NamesSnapshot(const std::string& text) {
  return text.find('@') != std::string::npos && text.find_first_of("/:") == std::string::npos;
}

Result<SourceFolder> FromSnapshot(World& world, const std::string& text, ProgressMeter* meter,
                                  const StopSignals& signals) {
  const size_t cut = text.find('@');
  OC_TRY(opened, OpenWorkspace(world, text.substr(0, cut)));
  OC_TRY(snapshot, opened.repository.Find(opened.found.workspace.name, text.substr(cut + 1)));
  return BringSnapshot(opened.repository, snapshot, world.root(), ShowRestore(meter), signals.flag());
}

// What is to be fanned out: a folder of this machine, or objects of a store.
struct Found {
  SourceFolder folder;
  std::optional<OpenedStore> store;
};

tl::unexpected<Error> RefuseBucket(const StoreLocation& location, const std::string& text,
                                   const std::string& target) {
  const std::string name = location.Name(),
                    copy = ShellQuote(StrCat("./", name.empty() ? location.bucket : name));
  return Fail(ErrorCode::kUsage, StrCat(Quoted(text, 300), " is in a bucket: a folder fans out"),
              StrCat("copy it first: overcap store cp ", ShellQuote(text), " ", copy, " && overcap fanout ",
                     copy, " --to ", ShellQuote(target)));
}

Result<Found> FindSource(World& world, const Args& args, ProgressMeter* meter, const StopSignals& signals) {
  const std::string& text = args.words()[0];
  OC_TRY(here, world.Folder());
  const std::string path = text.starts_with('/') ? text : StrCat(here, "/", text);
  Found found;
  if (IsFolder(path)) {
    std::string& folder = found.folder.folder;
    folder = path;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    found.folder.old = {folder};
    const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
    if (real && folder != real.get()) found.folder.old.emplace_back(real.get());
    return found;
  }
  if (NamesSnapshot(text)) {
    OC_TRY(folder, FromSnapshot(world, text, meter, signals));
    found.folder = std::move(folder);
    return found;
  }
  const auto place = FindStorePlace(StoreBookOf(world), text);
  if (place && IsInBucket(*place)) return RefuseBucket(place->location, text, std::string(args.Get("--to")));
  OC_TRY(source, OpenSource(world, text));
  if (!source.key.empty())
    return Fail(ErrorCode::kUsage, StrCat(Quoted(text, 300), " is a single file"), "give a folder");
  found.store = std::move(source);
  return found;
}

Result<FanoutSource> ReadFolder(World& world, const std::string& folder, ProgressMeter* meter,
                                const StopSignals& signals) {
  SourceRequest read{folder, world.root(), OwnHostName(), world.user(), {}, signals.flag()};
  read.progress = [meter](const BackupProgress& progress) {
    meter->Show({"read", "reading", progress.files_done, progress.files_total, progress.bytes_done,
                 progress.bytes_total});
  };
  return ReadFanoutSource(read);
}

std::string Percent(int64_t part, int64_t whole) {
  if (part > whole) return "over 100 %";  // of a few bytes: what is said about them is more
  const int64_t thousandths = whole == 0 ? 0 : part * 1000 / whole;
  return StrCat(thousandths / 10, ".", thousandths % 10, " %");
}

void TellNode(const FanoutNodeEnd& node, JsonWriter* json) {
  json->BeginObject().Field("host", node.host).Field("complete", !node.error);
  if (node.error) {
    json->Key("error").BeginObject().Field("code", ErrorCodeName(node.error->code));
    json->Field("message", node.error->message).Field("hint", node.error->hint).EndObject();
  }
  json->Field("from", !node.fetched ? "" : node.from.empty() ? "head" : node.from);
  json->Field("written_files", node.ready.written_files);
  json->Field("written_bytes", node.ready.written_bytes);
  json->Field("same_files", node.ready.same_files).Field("removed", node.ready.removed);
  json->Field("fixed", node.ready.fixed).Field("from_head_bytes", node.ready.from_head);
  json->Field("from_peers_bytes", node.ready.from_peers).Field("reused_bytes", node.ready.reused);
  json->EndObject();
}

// That of the failures when all are of one kind and nothing was done, else that some node is not there.
int StatusOf(const FanoutReport& report, const StopSignals& signals) {
  const auto all = static_cast<int64_t>(report.nodes.size());
  if (report.Complete() == all) return 0;
  if (signals.signal() != 0) return 128 + signals.signal();
  if (report.Complete() > 0) return ExitStatus(ErrorCode::kUnavailable);
  for (const FanoutNodeEnd& node : report.nodes) {
    if (node.error->code != report.nodes[0].error->code) return ExitStatus(ErrorCode::kUnavailable);
  }
  return ExitStatus(report.nodes[0].error->code);
}

int Tell(World& world, const FanoutSource& source, const FanoutReport& report, const StopSignals& signals,
         int64_t took_us) {
  Output& out = world.out();
  out.ClearProgress();
  const int status = StatusOf(report, signals);
  const int64_t head = report.FromHead(), peers = report.FromPeers(), moved = head + peers;
  const auto all = static_cast<int64_t>(report.nodes.size());
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", status).Field("files", source.files);
    json.Field("bytes", source.bytes).Field("complete", report.Complete());
    json.Field("failed", all - report.Complete()).Field("wire_bytes", moved);
    json.Field("from_head_bytes", head).Field("from_peers_bytes", peers);
    json.Field("seconds", static_cast<double>(took_us) / 1e6).Key("nodes").BeginArray();
    for (const FanoutNodeEnd& node : report.nodes) TellNode(node, &json);
    out.Json(json.EndArray().EndObject().Text());
    return status;
  }
  std::string hint;
  for (const FanoutNodeEnd& node : report.nodes) {
    if (!node.error || signals.signal() != 0) continue;
    out.Warn(node.error->message);
    if (hint.empty()) hint = node.error->hint;
  }
  if (signals.signal() != 0) out.Warn("stopped; the same command goes on where this one ended");
  const bool failed = report.Complete() < all;
  if (failed && signals.signal() == 0)
    out.Note(StrCat("hint: ", hint.empty() ? "the same command brings the rest" : hint));
  out.Note(StrCat(CountOf(source.files, "file"), ", ", FormatBytes(source.bytes), " on ", report.Complete(),
                  " of ", CountOf(all, "node"), " in ", FormatElapsed(took_us), "; ", FormatBytes(moved),
                  " moved (", Percent(moved, source.bytes * all), "): ", FormatBytes(head), " from here, ",
                  FormatBytes(peers), " among the nodes"));
  return status;
}

void TellUnread(World& world, const FanoutSource& source) {
  for (size_t i = 0; i < source.problems.size() && i < kSomeProblems; ++i) {
    if (!source.problems[i].skipped)
      world.out().Warn(
          StrCat(Quoted(source.problems[i].path, 300), ": ", source.problems[i].what, "; it is left out"));
  }
}

FanoutRequest RequestFrom(World& world, const Args& args, const FanoutHosts& hosts, ProgressMeter* meter,
                          const StopSignals& signals) {
  FanoutRequest request;
  request.hosts = hosts.names;
  request.target = args.Get("--to");
  request.fix = !args.Has("--no-fix");
  request.ssh_only = args.Has("--ssh-only");
  request.force = args.Has("--force");
  request.binary = world.binary();
  request.ssh_program = hosts.ssh_program;
  request.ssh_options = hosts.ssh_options;
  request.env = Variables::OfThisProcess().entries();
  request.random = &world.random();
  request.stop = signals.flag();
  request.progress = [meter](const FanoutProgress& progress) {
    const std::string words = StrCat(progress.complete, " of ", CountOf(progress.nodes, "node"),
                                     progress.failed > 0 ? StrCat(", ", progress.failed, " failed") : "");
    meter->Show(
        {"fanout", words, progress.complete, progress.nodes, progress.bytes_done, progress.bytes_total});
  };
  request.note = [&world](const std::string& text) { world.out().Note(text); };
  request.warn = [&world](const std::string& text) { world.out().Warn(text); };
  return request;
}

// What is in a store is first brought to a folder here.
Result<FanoutSource> ReadSource(World& world, const Args& args, Found* found, ProgressMeter* meter,
                                const StopSignals& signals) {
  if (found->store) {
    OC_TRY(options, TransferOptionsFrom(args, "fetch", "fetching", meter, signals));
    OC_TRY(brought, BringObjects(*found->store->store, world.root(), std::move(options)));
    found->folder = std::move(brought);
  }
  return ReadFolder(world, found->folder.folder, meter, signals);
}

Result<int> DoFanout(World& world, const Args& args) {
  if (!args.Has("--to")) return Fail(ErrorCode::kUsage, "--to is missing: where shall it go on the nodes?");
  const std::string target(args.Get("--to"));
  if (target.empty() || std::string_view("/~$").find(target[0]) == std::string_view::npos)
    return Fail(ErrorCode::kUsage, StrCat("--to: ", Quoted(target, 300), " is not an absolute path"),
                "begin it with /, ~ or a variable, as in --to '$TMPDIR/env'");
  OC_TRY(folder, world.Folder());
  const LaunchWorld around{world.root(),  world.binary(), folder,         world.user(),
                           world.clock(), world.random(), world.config(), Variables::OfThisProcess()};
  OC_TRY(hosts, FindFanoutHosts(around, std::string(args.Get("--hosts"))));
  for (const std::string& warning : hosts.warnings) world.out().Warn(warning);
  const StopSignals signals;
  const StopGrace grace(signals, StoppedLate(world));
  ProgressMeter meter(world.out(), world.clock());
  const auto stopped = [&](const Error& error) {
    return EndFailed(world, signals, error, "stopped; the same command goes on where this one ended");
  };
  auto found = FindSource(world, args, &meter, signals);
  if (!found) return stopped(found.error());
  FanoutRequest request = RequestFrom(world, args, hosts, &meter, signals);
  request.old = found->folder.old;
  const auto source = ReadSource(world, args, &*found, &meter, signals);
  if (!source) return stopped(source.error());
  TellUnread(world, *source);
  const auto report = RunFanout(*source, request);
  if (!report) return Fail(report.error());
  return Tell(world, *source, *report, signals, meter.ElapsedUs());
}

}  // namespace

constinit const Command kFanout = {
    .name = "fanout",
    .summary = "bring an environment or a folder to the local disks of many nodes",
    .usage = "SRC --to DST [--hosts HOSTS] [--force] [--ssh-only] [--no-fix]",
    .flags = kFanoutFlags,
    .min_words = 1,
    .max_words = 1,
    .run = DoFanout,
    .group = CommandGroup::kCode,
    .synonyms = kSynonyms,
};

}  // namespace overcap::cli
