// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/keep_mounts.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/mounts/choose_mounter.h"
#include "control/mounts/copy_mount.h"
#include "control/mounts/fuse_mount.h"
#include "control/mounts/job_stores.h"
#include "control/mounts/keeper_voice.h"
#include "control/mounts/mount_table.h"
#include "control/mounts/node_folder.h"
#include "control/mounts/place_link.h"
#include "control/mounts/sweep_mounts.h"
#include "model/job_spec.h"
#include "sys/clock.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kTendTime{1000}, kLookTime{200};
constexpr int64_t kEarlierUs = 1'800'000'000;

struct KeeperOptions {
  std::string job_dir, folder;
  std::string place;  // the node's folder for mounts, as it is on the job's first node; "": this is the first
  int attempt = 0, slot = 0;
};

Result<KeeperOptions> ParseOptions(const std::vector<std::string>& words) {
  KeeperOptions options;
  for (size_t i = 2; i + 1 < words.size(); i += 2) {
    const auto number = ParseInt(words[i + 1]);
    if (words[i] == "--job") options.job_dir = words[i + 1];
    if (words[i] == "--folder") options.folder = words[i + 1];
    if (words[i] == "--place") options.place = words[i + 1];
    if (words[i] == "--attempt" && number) options.attempt = static_cast<int>(*number);
    if (words[i] == "--slot" && number) options.slot = static_cast<int>(*number);
  }
  if (!options.job_dir.starts_with('/') || !options.folder.starts_with('/') || options.attempt < 1)
    return Fail(ErrorCode::kUsage, "agent mounts needs --job, --attempt, --slot and --folder");
  if (!options.place.empty() && !options.place.starts_with('/'))
    return Fail(ErrorCode::kUsage, StrCat("agent mounts: '", options.place, "' is no absolute path"));
  return options;
}

NodeTools ToolsHere(const Variables& variables, const std::string& mounter) {
  NodeTools tools;
  const std::string_view path = PathOf(variables.entries());
  tools.fuse_device = Fd(open("/dev/fuse", O_RDWR | O_CLOEXEC)).Valid();
  tools.can_unmount = CanUnmount(path);
  std::vector<std::string> names = MounterNames();
  if (!mounter.empty()) names.push_back(mounter);
  for (const std::string& name : names) {
    if (ResolveProgram(name, path, "/")) tools.mounters.insert(name);
  }
  return tools;
}

// One mount that is there.
struct Held {
  MountSpec mount;
  std::string target;  // where its link leads; the same on all nodes
  std::optional<FuseMount> fuse;
  std::optional<CopyMount> copy;
};

class Keeper {
 public:
  Keeper(KeeperOptions options, JobSpec spec, Variables variables, KeeperVoice* voice)
      : options_(std::move(options)),
        spec_(std::move(spec)),
        variables_(std::move(variables)),
        voice_(*voice) {}

  int Run() {
    if (const auto prepared = Prepare(); !prepared) {
      const Error& error = prepared.error();
      GiveUp();
      voice_.Say("failed", error.hint.empty() ? error.message : StrCat(error.message, " (", error.hint, ")"));
      return 1;
    }
    voice_.Say("ready");
    while (!voice_.ended()) {
      voice_.Wait(kTendTime);
      if (!voice_.ended()) Tend();
    }
    Release();
    voice_.Say("released", variables_.Get("SLURMD_NODENAME"));
    return 0;
  }

 private:
  Result<void> Prepare() {
    OC_TRY(node_folder, OwnFolder());
    place_ = options_.place.empty() ? node_folder : options_.place;
    voice_.Say("place", place_);
    kept_ = node_folder + "/kept";
    AwaitEarlierAttempts(node_folder);
    const MountsSwept swept = SweepMounts(
        node_folder, variables_, {.all = false, .job = spec_.id, .alive = [this] { voice_.Alive(); }});
    if (swept.saved > 0) voice_.Say("note", "outputs of an attempt that was killed were saved first");
    OC_TRY(book, BookOfMounts(spec_.mounts, variables_));
    book_ = std::move(book);
    const std::string own = StrCat(node_folder, "/", SlotName());
    if (!options_.place.empty() && PosixFiles().Exists(own)) return UseFirstNodes(own);
    OC_TRY(slot, SlotFolder::Make(node_folder, SlotName()));
    slot_.emplace(std::move(slot));
    OC_TRY_VOID(
        PosixFiles().WriteAtomic(slot_->Record(), MountsRecordText({OwnHostName(), spec_.mounts}), false));
    for (const MountSpec& mount : spec_.mounts) {
      if (voice_.ended()) return Fail(ErrorCode::kConflict, "stopped while stores were mounted");
      if (auto made = PrepareOne(mount); !made) return Fail(Named(mount, std::move(made).error()));
    }
    return {};
  }

  Error Named(const MountSpec& mount, Error error) const {
    error.message = StrCat("mount '", mount.name, "' on node '", OwnHostName(), "': ", error.message);
    return error;
  }

  std::string SlotName() const { return StrCat(spec_.id, ".", options_.attempt, ".", options_.slot); }
  std::string LinkTo(const MountSpec& mount) const {
    return IsLinkedFolder(mount) ? mount.store : StrCat(place_, "/", SlotName(), "/", mount.name);
  }

  // What the keeper of the first node has made is seen here: its copies are ours, too; its mounts only where
  // both nodes are parts of one machine.
  Result<void> UseFirstNodes(const std::string& slot) {
    for (const MountSpec& mount : spec_.mounts) {
      auto used = UseFirstNodes(mount, slot);
      if (!used) return Fail(Named(mount, std::move(used).error()));
    }
    return {};
  }

  Result<void> UseFirstNodes(const MountSpec& mount, const std::string& slot) const {
    if (IsLinkedFolder(mount)) {
      OC_TRY_VOID(CheckFolder(mount));
    } else if (!IsCopy(mount.mode)) {
      OC_TRY(points, MountsBelow(slot));
      if (std::find(points.begin(), points.end(), StrCat(slot, "/", mount.name)) == points.end())
        return Fail(ErrorCode::kUsage,
                    StrCat("'", place_,
                           "' is one folder for several nodes, and what one mounts there the others "
                           "do not see"),
                    "set 'mounts_at' of the cluster to a folder of each node's own disk, or use mode copy");
    }
    return PlaceLink(options_.folder, mount.at, LinkTo(mount));
  }

  Result<std::string> OwnFolder() const {
    const Result<std::string> written = options_.place.empty() ? NodeFolderPath(spec_.mounts_at, variables_)
                                                               : Result<std::string>(options_.place);
    auto folder = written ? OpenNodeFolder(*written) : written;
    if (folder) return folder;
    Error error = std::move(folder).error();
    error.message = StrCat("'mounts_at' of the cluster on node '", OwnHostName(), "': ", error.message);
    if (error.hint.empty()) error.hint = "it must be a folder of the node where you may write";
    return Fail(std::move(error));
  }

  // One whose agent was killed may still upload what it wrote, which this one is to find.
  void AwaitEarlierAttempts(const std::string& node_folder) {
    const int64_t end_us = PosixClock().MonotonicUs() + kEarlierUs;
    while (SlotFolder::IsHeldBefore(node_folder, spec_.id, options_.attempt, options_.slot) &&
           !voice_.ended() && PosixClock().MonotonicUs() < end_us) {
      voice_.Alive();
      voice_.Wait(kLookTime);
    }
  }

  Result<void> PrepareOne(const MountSpec& mount) {
    held_.push_back(std::make_unique<Held>());
    Held& held = *held_.back();
    held.mount = mount;
    held.target = LinkTo(mount);
    if (IsLinkedFolder(mount)) {
      OC_TRY_VOID(CheckFolder(mount));
    } else {
      OC_TRY(place, PlaceOfMount(mount));
      OC_TRY_VOID(CheckStore(mount, place));
      OC_TRY_VOID(IsCopy(mount.mode) ? MakeCopy(place, &held) : MakeFuse(place, &held));
    }
    return PlaceLink(options_.folder, mount.at, held.target);
  }

  static Result<void> CheckFolder(const MountSpec& mount) {
    struct stat info {};
    if (stat(mount.store.c_str(), &info) != 0)
      return Fail(ErrnoError(errno, StrCat("cannot link folder '", mount.store, "'")));
    if (!S_ISDIR(info.st_mode)) return Fail(ErrorCode::kUsage, StrCat("'", mount.store, "' is no folder"));
    const bool writes = mount.mode == MountMode::kWrite;
    if (access(mount.store.c_str(), R_OK | X_OK | (writes ? W_OK : 0)) != 0)
      return Fail(
          ErrnoError(errno, StrCat("cannot ", writes ? "write to" : "read", " folder '", mount.store, "'")));
    return {};
  }

  // By our own client, which says what is wrong better than a mounter does.
  Result<void> CheckStore(const MountSpec& mount, const StorePlace& place) {
    OC_TRY(store, OpenStoreAt(book_, place, {.keys = KeyRule::kAny}));
    OC_TRY(page, store->List("", ""));
    const bool reads = mount.mode == MountMode::kRead || mount.mode == MountMode::kCopyRead;
    if (reads && page.objects.empty() && page.next.empty() && page.left_out == 0)
      return Fail(ErrorCode::kNotFound, StrCat("there is nothing in '", mount.store, "' that could be read"));
    return {};
  }

  Result<void> MakeCopy(const StorePlace& place, Held* held) {
    const MountSpec& mount = held->mount;
    CopyMount copy({mount, place, slot_->PlacesOf(mount.name).point, slot_->HadFile(mount.name), kept_},
                   &book_);
    OC_TRY_VOID(copy.Download(Hooks()));
    held->copy.emplace(std::move(copy));
    return {};
  }

  Result<void> MakeFuse(const StorePlace& place, Held* held) {
    const MountSpec& mount = held->mount;
    OC_TRY(mounters, ChooseMounters(mount, place.location.kind, ToolsHere(variables_, mount.mounter)));
    OC_TRY(access, FindStoreAccess(book_, place));
    Error failed;
    for (const std::string& mounter : mounters) {
      Result<void> mounted = MountBy(mounter, place, access, held);
      if (mounted && !failed.message.empty())
        voice_.Say("note", StrCat("mount '", mount.name, "': ", failed.message, "; '", mounter,
                                  "' has mounted it instead"));
      if (mounted || voice_.ended()) return mounted;
      Error error = std::move(mounted).error();
      if (!failed.message.empty()) error.message = StrCat(failed.message, "; ", error.message);
      failed = std::move(error);
      voice_.Alive();
    }
    return Fail(std::move(failed));
  }

  Result<void> MountBy(const std::string& mounter, const StorePlace& place, const StoreAccess& access,
                       Held* held) {
    const MountSpec& mount = held->mount;
    FuseMount::Request request;
    request.mounter = mounter;
    request.places = slot_->PlacesOf(mount.name);
    request.places.log = StrCat(options_.job_dir, "/attempt-", options_.attempt, "/mount-", mount.name, ".",
                                OwnHostName(), ".log");
    OC_TRY(command, ComposeMounter(mounter, mount, place.location, access, request.places));
    request.command = std::move(command);
    request.env = variables_.entries();
    request.writes = mount.mode == MountMode::kWrite;
    FuseMount fuse(std::move(request));
    OC_TRY_VOID(fuse.Start([this] { return voice_.ended().load(); }));
    held->fuse.emplace(std::move(fuse));
    return {};
  }

  CopyMount::Hooks Hooks() {
    return {&voice_.ended(), [this] { voice_.Alive(); },
            [this](const std::string& text) { voice_.Say("note", text); }};
  }

  void Tend() {
    for (const auto& held : held_) {
      std::string note;
      if (held->fuse) (void)held->fuse->Tend(&note);
      if (!note.empty()) voice_.Say("note", StrCat("mount '", held->mount.name, "': ", note));
    }
  }

  // The ranks have ended.
  void Release() {
    for (auto at = held_.rbegin(); at != held_.rend(); ++at) {
      Held& held = **at;
      if (!held.fuse && !held.copy) continue;  // a link to a folder may stay
      RemoveLink(options_.folder, held.mount.at, held.target);
      const auto released =
          held.fuse ? held.fuse->Release([this] { voice_.Alive(); }) : held.copy->Release(Hooks());
      if (!released)
        voice_.Say("unsaved", StrCat("mount '", held.mount.name, "' on node '", OwnHostName(),
                                     "': ", released.error().message, "; see '", slot_->path(), "'"));
    }
    if (slot_) (void)slot_->Remove();
  }

  // The ranks have not begun.
  void GiveUp() {
    for (auto at = held_.rbegin(); at != held_.rend(); ++at) {
      Held& held = **at;
      if (!held.fuse && !held.copy) continue;
      RemoveLink(options_.folder, held.mount.at, held.target);
      (void)(held.fuse ? held.fuse->Release([] {}) : held.copy->Drop());
    }
    if (slot_) (void)slot_->Remove();
  }

  const KeeperOptions options_;
  const JobSpec spec_;
  const Variables variables_;
  KeeperVoice& voice_;
  StoreBook book_;
  std::string place_, kept_;
  std::optional<SlotFolder> slot_;  // none where the first node's is seen
  std::vector<std::unique_ptr<Held>> held_;
};

// Only the end of standard input ends a keeper: a scheduler that ends a job signals all its processes.
void IgnoreSignals() {
  for (const int sig : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGQUIT}) signal(sig, SIG_IGN);
}

}  // namespace

Result<int> RunMountsKeeper(const std::vector<std::string>& words) {
  if (words.size() == 4 && words[2] == "--probe") return ProbeFolder(words[3]);
  IgnoreSignals();
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a mounter leaves behind is found below us
  OC_TRY(options, ParseOptions(words));
  OC_TRY(text, PosixFiles().Read(options.job_dir + "/spec.json"));
  OC_TRY(spec, SpecFromJson(text));
  OC_TRY_VOID(CheckMounts(spec.mounts));
  static KeeperVoice voice;  // its thread may outlive us
  Variables variables = Variables::OfThisProcess();
  voice.Listen(std::string(options.place.empty() ? "" : variables.Get("SLURMD_NODENAME")));
  return Keeper(std::move(options), std::move(spec), std::move(variables), &voice).Run();
}

}  // namespace overcap
