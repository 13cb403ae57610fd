// SPDX-License-Identifier: Apache-2.0
// Two hosts, one workspace, and everything that may go wrong between them, beside a plain copy of all that
// was ever written: what a user wrote and did not remove himself is in a working copy or was in a snapshot.
// OVERCAP_TEST_SEEDS=10000 runs that many; OVERCAP_TEST_SEED=N only that one, with all that it does.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include "base/text.h"
#include "control/workspace_backup.h"
#include "control/workspace_contents.h"
#include "control/workspace_create.h"
#include "control/workspace_look.h"
#include "control/workspace_prune.h"
#include "control/workspace_restore.h"
#include "snapshot/repository/object_keys.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Picture = std::map<std::string, std::string>;  // paths of files, their contents

constexpr int kSteps = 24;
constexpr const char* kPaths[] = {"a", "b", "d", "d/a", "d/b", "d/e/a", "f/a", "f/b"};

// A host whose clock is ahead or behind.
class SkewedClock : public Clock {
 public:
  explicit SkewedClock(int64_t ahead_us) : ahead_us_(ahead_us) {}
  int64_t WallUs() const override { return PosixClock().WallUs() + ahead_us_; }
  int64_t MonotonicUs() const override { return PosixClock().MonotonicUs(); }

 private:
  const int64_t ahead_us_;
};

Picture PictureOf(const std::string& folder) {
  Picture picture;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error); at != fs::recursive_directory_iterator();
       at.increment(error)) {
    const std::string path = at->path().string().substr(folder.size() + 1);
    if (path == ".overcap") at.disable_recursion_pending();
    if (!at->is_regular_file(error) || path.starts_with(".overcap")) continue;
    picture[path] = PosixFiles().Read(at->path().string()).value_or("(unreadable)");
  }
  return picture;
}

class Model {
 public:
  Model(uint64_t seed, bool tells) : random_(seed), tells_(tells) {
    constexpr int64_t kSkews[] = {0, 5'000'000, -5'000'000, 86'400'000'000, 126'000'000'000'000};
    for (int host = 0; host < 2; ++host) {
      clocks_.push_back(std::make_unique<SkewedClock>(kSkews[random_.Below(std::size(kSkews))]));
      WorkspaceWorld& world = worlds_[host];
      world.roots = {temp_ / "root"};
      world.user = "ann";
      world.host = host == 0 ? "a" : "b";
      world.variables = Variables::OfThisProcess();
      world.clock = clocks_.back().get();
      world.random = &ids_;
    }
  }

  // What went wrong; "" nothing.
  std::string Run() {
    WorkspaceCreateRequest request;
    request.name = "work";
    request.at = Folder(0);
    request.store = StrCat("mem:", temp_.Path().substr(1));
    if (const auto made = CreateWorkspace(worlds_[0], request); !made) return made.error().message;
    for (int step = 0; step < kSteps && wrong_.empty(); ++step) Step(static_cast<int>(random_.Below(2)));
    for (int host = 0; host < 2 && wrong_.empty(); ++host) EndOn(host);
    return wrong_;
  }

 private:
  std::string Folder(int host) { return StrCat(temp_ / "disk", host); }
  bool Is(int percent) { return random_.Below(100) < static_cast<uint64_t>(percent); }
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  void Tell(int host, const std::string& what) {
    if (tells_) std::cerr << worlds_[host].host << ": " << what << "\n";
  }

  FoundWorkspace Found(int host) {
    auto found = FindWorkspace(worlds_[host], "work").value();
    if (!WorkspaceBook(worlds_[host].roots[0]).FindPlace("work", worlds_[host].host)) {
      found.folder = Folder(host);
      const auto copy = ReadWorkspaceCopy(found.folder);
      found.copy = copy ? std::optional(*copy) : std::nullopt;
    }
    return found;
  }
  Repository Open(int host) { return OpenRepositoryOf(worlds_[host], Found(host).workspace).value(); }

  void Step(int host) {
    NextTick();
    const uint64_t what = random_.Below(100);
    if (what < 40) return Edit(host, nullptr);
    if (what < 58) return Save(host);
    if (what < 74) return Bring(host);
    if (what < 84) return GoBack(host);
    if (what < 89) return ForgetOne(host);
    if (what < 95) return PruneOn(host);
    if (what < 98) return LosePack(host);
    return Damage(host);
  }

  // Each content is new, and of another length than those before it.
  std::string NewContent() {
    ++counter_;
    return StrCat("content ", counter_, std::string(static_cast<size_t>(counter_), '.'));
  }

  // The hosts' clocks are not that of this machine's files, so no two steps may have the same ctime.
  static void NextTick() {
    struct timespec now {
    }, then{};
    clock_gettime(CLOCK_REALTIME_COARSE, &then);
    do {
      clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_nsec == then.tv_nsec && now.tv_sec == then.tv_sec);
  }

  // `owed` gets what was written, and loses what that has replaced.
  void Edit(int host, Picture* owed) {
    const std::string folder = Folder(host), path = kPaths[random_.Below(std::size(kPaths))];
    if (!fs::exists(folder)) return;
    std::error_code error;
    const auto forget = [&](const std::string& gone) {
      if (owed != nullptr)
        std::erase_if(
            *owed, [&](const auto& one) { return one.first == gone || one.first.starts_with(gone + "/"); });
    };
    const std::string whole = StrCat(folder, "/", path);
    if (owed == nullptr && Is(20)) {
      fs::remove_all(whole, error);
      return Tell(host, StrCat("removes ", path));
    }
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string above = path.substr(0, slash);
      if (!fs::is_regular_file(StrCat(folder, "/", above))) continue;
      if (owed != nullptr) return;
      fs::remove(StrCat(folder, "/", above), error);
    }
    if (fs::is_directory(whole, error)) {
      if (owed != nullptr) return;
      fs::remove_all(whole, error);
    }
    fs::create_directories(fs::path(whole).parent_path(), error);
    const std::string content = NewContent();
    const bool written = PosixFiles().WriteAtomic(whole, content, false).has_value();
    Tell(host, StrCat("writes ", path, ": ", content.substr(0, 12), written ? "" : " in vain"));
    if (!written || owed == nullptr) return;
    forget(path);
    (*owed)[path] = content;
  }

  // What each snapshot has, whether its packs are there or not.
  bool InSnapshot(const std::string& content) const {
    return std::ranges::any_of(saved_, [&](const auto& snapshot) {
      return std::ranges::any_of(snapshot.second, [&](const auto& file) { return file.second == content; });
    });
  }

  Result<Picture> ReadBack(const Repository& repository, const NamedSnapshot& snapshot) {
    Picture picture;
    OC_TRY(contents, SnapshotContents::Open(repository));
    std::vector<std::string> paths;
    OC_TRY_VOID(contents.List(snapshot, "", true, [&](const SnapshotEntry& entry) -> Result<void> {
      if (entry.IsFile()) paths.push_back(entry.path);
      return {};
    }));
    for (const std::string& path : paths) {
      OC_TRY_VOID(contents.Cat(snapshot, path, [&](std::string_view bytes) -> Result<void> {
        picture[path] += bytes;
        return {};
      }));
    }
    return picture;
  }

  void Save(int host) {
    const auto found = FindWorkspaceHere(worlds_[host], "work");
    if (!found || found->folder != Folder(host)) return;
    const Repository repository = Open(host);
    const auto backup = BackUpWorkspace(worlds_[host], *found, repository, {});
    Tell(host, backup ? "backup " + backup->Newest().ShortId() : "backup: " + backup.error().message);
    if (!backup) return;
    const Picture folder = PictureOf(Folder(host));
    const auto back = ReadBack(repository, backup->Newest());
    if (!back) return Wrong("saved, but cannot be read: " + back.error().message);
    if (*back != folder) return Wrong("saved, but the snapshot is not the folder");
    saved_[backup->Newest().Id()] = folder;
    if (const auto newest = repository.Find("work", "latest");
        newest && newest->Id() != backup->Newest().Id())
      Wrong("the last snapshot is not the newest");
  }

  // A restore of some kind, in which edits may come and which may be stopped.
  void Guarded(int host, const std::string& what,
               const std::function<Result<RestoreReport>(const WorkspaceRestoreOptions&)>& act) {
    Picture owed = PictureOf(Folder(host));
    WorkspaceRestoreOptions options;
    std::atomic<bool> stop = false;
    const bool edits = Is(40), stops = Is(25);
    options.force = Is(4);
    options.stop = &stop;
    std::once_flag once;
    options.progress = [&](const RestoreProgress&) {
      std::call_once(once, [&] {
        for (int n = 0; edits && n < 3; ++n) Edit(host, &owed);
        stop = stops;
      });
    };
    const auto report = act(options);
    Tell(host, StrCat(what, options.force ? " --force: " : ": ",
                      report ? StrCat("done, ", report->kept, " kept of ", report->failed)
                             : report.error().message));
    if (!report && stop && Is(50)) LeaveHalfAFile(host);
    if (options.force) return;
    const Picture now = PictureOf(Folder(host));
    for (const auto& [path, content] : owed) {
      const auto at = now.find(path);
      const bool stays = at != now.end() && at->second == content;
      if (!stays && !InSnapshot(content) && !halves_.contains(content))
        return Wrong(StrCat(what, " lost '", path, "' on ", worlds_[host].host, ": ", content.substr(0, 12)));
    }
  }

  // As a kill in the middle of a write does.
  void LeaveHalfAFile(int host) {
    const auto copy = ReadWorkspaceCopy(Folder(host));
    if (!copy || !saved_.contains(copy->restoring)) return;
    for (const auto& [path, content] : saved_[copy->restoring]) {
      const fs::path whole = fs::path(Folder(host)) / path;
      if (fs::exists(whole) || !fs::is_directory(whole.parent_path())) continue;
      halves_.insert(content.substr(0, content.size() / 2));
      std::ofstream(whole) << content.substr(0, content.size() / 2);
      return Tell(host, "leaves half of " + path);
    }
  }

  void Bring(int host) {
    if (host == 1 && !fs::exists(Folder(1))) fs::create_directories(Folder(1));
    Guarded(host, "init", [&](const WorkspaceRestoreOptions& options) -> Result<RestoreReport> {
      OC_TRY(init, InitWorkspace(worlds_[host], Found(host), Open(host), Folder(host), options));
      return init.report;
    });
  }

  void GoBack(int host) {
    const auto found = FindWorkspaceHere(worlds_[host], "work");
    if (!found || found->folder != Folder(host)) return;
    const Repository repository = Open(host);
    const auto all = repository.Snapshots("work");
    if (!all || all->empty()) return;
    const NamedSnapshot& snapshot = (*all)[random_.Below(all->size())];
    std::vector<std::string> paths;
    if (Is(50)) {
      const std::string path = kPaths[random_.Below(std::size(kPaths))];
      if (const auto contents = SnapshotContents::Open(repository);
          contents && SnapshotContents::Open(repository)->Find(snapshot, path))
        paths = {path};
    }
    Guarded(host, StrCat("restore ", snapshot.ShortId(), " ", Join(paths, " ")),
            [&](const WorkspaceRestoreOptions& options) {
              return RestoreInPlace(worlds_[host], *found, repository, snapshot, paths, options);
            });
  }

  void ForgetOne(int host) {
    const Repository repository = Open(host);
    const auto all = repository.Snapshots("work");
    if (!all || all->size() < 2) return;
    const NamedSnapshot& snapshot = (*all)[random_.Below(all->size())];
    Tell(host, "forget " + snapshot.ShortId());
    if (repository.Forget(snapshot)) saved_.erase(snapshot.Id());
  }

  void PruneOn(int host) {
    const Repository repository = Open(host);
    std::set<std::string> stood_on;
    for (int other = 0; other < 2; ++other) {
      if (const auto copy = ReadWorkspaceCopy(Folder(other)); copy && saved_.contains(copy->base))
        stood_on.insert(copy->base);
    }
    WorkspacePruneRequest request;
    request.rules = Is(50) ? KeepRules{.last = 1} : KeepRules{.within_seconds = 3'600};
    const auto pruned = PruneWorkspace(worlds_[host], Found(host).workspace, repository, request);
    Tell(host, pruned ? "prune" : "prune: " + pruned.error().message);
    const auto left = repository.Snapshots("work");
    if (!left) return Wrong("no list of snapshots after a prune");
    std::set<std::string> ids;
    for (const NamedSnapshot& snapshot : *left) ids.insert(snapshot.Id());
    std::erase_if(saved_, [&](const auto& one) { return !ids.contains(one.first); });
    for (const std::string& id : stood_on) {
      if (!ids.contains(id)) Wrong("a prune took the snapshot that a copy stands on");
    }
  }

  void LosePack(int host) {
    const Repository repository = Open(host);
    const auto packs = repository.store().ListAll(std::string(kPacksPrefix));
    if (!packs || packs->empty()) return;
    const std::string& key = (*packs)[random_.Below(packs->size())].key;
    Tell(host, "loses " + key);
    lossy_ = lossy_ || repository.store().Remove(key).has_value();
  }

  void Damage(int host) {
    const std::string file = LocalFolderOf(Folder(host)) + "/workspace.json";
    const auto text = PosixFiles().Read(file);
    if (!text || !WorkspaceBook(worlds_[host].roots[0]).FindPlace("work", worlds_[host].host)) return;
    Tell(host, "damages workspace.json");
    (void)PosixFiles().WriteAtomic(file, text->substr(0, text->size() / 2), false);
  }

  // No two commands point at each other for ever: after an init a backup works.
  void EndOn(int host) {
    if (lossy_ || !ReadWorkspaceCopy(Folder(host))) return;
    const WorkspaceRestoreOptions options;
    const auto init = InitWorkspace(worlds_[host], Found(host), Open(host), Folder(host), options);
    const auto found = FindWorkspaceHere(worlds_[host], "work");
    if (init && init->outcome == InitOutcome::kRestored && init->report.failed > init->report.kept) return;
    if (!found) return Wrong("neither init nor backup goes on: " + found.error().message);
    const auto backup = BackUpWorkspace(worlds_[host], *found, Open(host), {});
    if (!backup) Wrong("a backup after init fails: " + backup.error().message);
  }

  TempFolder temp_;
  SeededRandom random_;
  KernelRandom ids_;
  const bool tells_;
  std::vector<std::unique_ptr<SkewedClock>> clocks_;
  WorkspaceWorld worlds_[2];
  std::map<std::string, Picture> saved_;  // by id of the snapshot
  std::set<std::string> halves_;          // that no user wrote
  bool lossy_ = false;                    // a pack was lost
  int counter_ = 0;
  std::string wrong_;
};

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const char* text = getenv(variable);
  return text != nullptr ? static_cast<uint64_t>(atoll(text)) : otherwise;
}

TEST(WorkspaceModel, NothingThatWasWrittenIsLost) {
  if (access("/dev/shm", W_OK) == 0 && getenv("TMPDIR") == nullptr) setenv("TMPDIR", "/dev/shm", 0);
  if (getenv("OVERCAP_TEST_SEED") != nullptr) {
    EXPECT_EQ(Model(NumberOf("OVERCAP_TEST_SEED", 0), true).Run(), "");
    return;
  }
  const uint64_t seeds = NumberOf("OVERCAP_TEST_SEEDS", 40);
  int failures = 0;
  for (uint64_t seed = 1; seed <= seeds && failures < 10; ++seed) {
    const std::string wrong = Model(seed, false).Run();
    EXPECT_EQ(wrong, "") << "OVERCAP_TEST_SEED=" << seed;
    failures += wrong.empty() ? 0 : 1;
  }
  if (failures == 0) std::cout << "storm: workspaces: " << seeds << " plays of two hosts, nothing lost\n";
}

}  // namespace
}  // namespace overcap
