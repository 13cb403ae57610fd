// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/restore.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "snapshot/format/block_codec.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/restore/content_check.h"
#include "snapshot/restore/content_cursor.h"
#include "snapshot/restore/content_writer.h"
#include "snapshot/restore/disk_space.h"
#include "snapshot/restore/file_maker.h"
#include "snapshot/restore/folder_look.h"
#include "snapshot/restore/leftovers.h"
#include "snapshot/restore/link_verdict.h"
#include "snapshot/restore/make_folders.h"
#include "snapshot/restore/note_seen.h"
#include "snapshot/restore/remove_extra.h"
#include "snapshot/restore/resume_marker.h"
#include "snapshot/restore/spread_inodes.h"
#include "snapshot/restore/thread_team.h"
#include "snapshot/restore/wanted_tree.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

constexpr int64_t kLongUs = 2'000'000;
constexpr std::chrono::milliseconds kSettle{110};
constexpr int kRemovers = 6;  // threads: a file system may wait for the disk in this

// What has to be done, by kind; entries in the order of the tree.
struct RestoreWork {
  std::vector<uint32_t> small;     // empty files, links, and what only needs its attributes
  std::vector<uint32_t> contents;  // files with content
  std::vector<uint32_t> links;     // hard links
  int64_t files = 0, bytes = 0;    // to be written
  bool folders = false;            // some folder has to be made or changed

  bool Any() const { return folders || !small.empty() || !contents.empty() || !links.empty(); }
};

RestoreWork WorkOf(const WantedTree& tree, const std::vector<EntryState>& states) {
  RestoreWork work;
  for (uint32_t entry = 0; entry < tree.size(); ++entry) {
    const EntryState state = states[entry];
    const WantedEntry& wanted = tree[entry];
    if (state == EntryState::kSame || state == EntryState::kFailed) continue;
    if (wanted.IsFolder()) {
      work.folders = work.folders || wanted.wanted || state != EntryState::kAttributes;
    } else if (wanted.IsHardLink()) {
      work.links.push_back(entry);
    } else if (wanted.IsSymlink() || state == EntryState::kAttributes || wanted.size == 0) {
      work.small.push_back(entry);
    } else {
      work.contents.push_back(entry);
      work.bytes += wanted.size;
    }
    if (wanted.IsFile() && state != EntryState::kAttributes) ++work.files;
  }
  return work;
}

// The cache's own folder is made before anything is looked at: later it would change the root's time.
void MakeRoomForSeen(const std::string& file) {
  const size_t cut = file.rfind('/');
  if (cut != file.npos && cut > 0) (void)mkdir(file.substr(0, cut).c_str(), 0700);
}

class Restorer {
 public:
  Restorer(const Repository& repository, const RestoreRequest& request, const ChunkIndex& index,
           const GetMeta& get, const WantedTree& tree, const TargetFolder& target)
      : repository_(repository),
        request_(request),
        index_(index),
        get_(get),
        tree_(tree),
        target_(target),
        exclude_(Join(request.exclude, "\n")),
        ledger_(tree, request),
        guard_(request),
        remover_(tree, exclude_, &guard_, &ledger_) {}

  Result<RestoreReport> Run() {
    began_ns_ = NowNs();
    began_us_ = repository_.clock().MonotonicUs();
    look_began_ns_ = LookBeganNs();
    LoadKnowledge();
    Look();
    OC_TRY_VOID(ledger_.Outcome());
    const RestoreWork work = WorkOf(tree_, survey_.states);
    const bool acts = work.Any() || (RemovesExtras() && !survey_.extras.empty());
    StagingFolder staging(target_.fd.Get(), request_.keep_name);
    Undertaker undertaker;
    remover_.Use(&staging);
    RestoreScene scene{tree_,
                       target_,
                       rules_,
                       staging,
                       undertaker,
                       ledger_,
                       survey_,
                       guard_,
                       {},
                       {},
                       TeamSize(request_.threads)};
    scene.hands_down.resize(tree_.size());
    scene.touched.resize(tree_.size());
    if (acts) OC_TRY_VOID(Act(work, &scene));
    if (acts || !survey_.to_read.empty() || !seen_ || seen_->tree() != request_.tree)
      OC_TRY_VOID(Note(&scene));
    ledger_.Report();
    return Report(work);
  }

 private:
  int64_t NowNs() const { return repository_.clock().WallUs() * 1000; }
  bool RemovesExtras() const { return request_.remove_extra && !tree_.partial(); }
  bool LookedAt() const {
    return LookedByCache() || (request_.look != nullptr && CanSurveyFrom(*request_.look));
  }
  // The look has found all that is to be done.
  bool LookedByCache() const {
    return request_.look != nullptr && request_.look->next_survey && &*request_.look->next == &tree_ &&
           RemovesExtras();
  }
  int64_t LookBeganNs() const { return LookedAt() ? request_.look->began_ns : began_ns_; }
  bool KeepsSeen() const { return !request_.seen_file.empty() && !tree_.partial(); }

  void LoadKnowledge() {
    if (request_.seen_file.empty()) return;
    if (!LookedAt()) seen_ = Seen::Load(request_.seen_file, repository_.config().id, target_.path);
    marker_ = {BootId(), request_.tree, target_.path, began_ns_};
    const Result<std::string> text = PosixFiles().Read(ResumeMarkerPath(request_.seen_file));
    const std::optional<ResumeMarker> old = text ? ResumeMarker::Decode(*text) : std::nullopt;
    if (old && old->SameWork(marker_)) {
      marker_.began_ns = old->began_ns;
      resumes_ = true;
    }
  }

  void Look() {
    SurveyRequest look;
    look.seen = seen_ ? &*seen_ : nullptr;
    look.knowledge = {seen_.has_value(), seen_ ? seen_->began_ns() : 0, resumes_, marker_.began_ns};
    look.match = {.times = true, .owners = request_.owners};
    look.rules = AttributeRules::OfThisProcess(request_.owners);
    look.list_names = RemovesExtras();
    look.exclude = &exclude_;
    look.keep_name = request_.keep_name;
    look.may_chmod = true;
    look.threads = TeamSize(request_.threads);
    look.stop = request_.stop;
    survey_ = LookedByCache() ? *std::move(request_.look->next_survey)
              : LookedAt()    ? SurveyFromLook(*request_.look, tree_, look)
                              : SurveyTarget(tree_, target_, look);
    for (const TreeGap& gap : tree_.gaps()) {
      ledger_.Problem(gap.from,
                      StrCat("this and what follows it", gap.to ? StrCat(" before ", Quoted(*gap.to)) : "",
                             " cannot be listed: ", gap.error.message),
                      std::max<int64_t>(gap.entries, 1) - 1);
    }
    if (tree_.left_out_keep_name())
      ledger_.Problem(request_.keep_name, "is never restored: it is Overcap's own");
    for (const SurveyFailure& failure : survey_.failures) {
      const int64_t below =
          tree_[failure.entry].IsFolder() ? tree_.End(failure.entry) - failure.entry - 1 : 0;
      ledger_.ErrnoProblem(failure.entry, "cannot be looked at", failure.error, below);
    }
    CheckContents(
        tree_, target_, look, get_, [this] { return ledger_.Over(); }, &survey_);
    JudgeLinks(tree_, &survey_);
    rules_ = look.rules;
    if (guard_.KeepsAny()) KeepNamed();
    if (guard_.on() && !exclude_.Empty()) KeepExcluded();
    if (request_.keep_foreign) KeepForeign();
  }

  // What the caller wants to stay. The content of a folder is kept entry by entry.
  void KeepNamed() {
    for (uint32_t entry = 1; entry < tree_.size(); ++entry) {
      const EntryState state = survey_.states[entry];
      const bool changes =
          state == EntryState::kReplace || (state == EntryState::kAttributes && !tree_[entry].IsFolder());
      if (changes && guard_.Keeps(tree_.Path(entry))) Keep(entry);
    }
    std::erase_if(survey_.extras, [&](const ExtraEntry& extra) {
      const bool keeps =
          guard_.Keeps(extra.folder == 0 ? extra.name : StrCat(tree_.Path(extra.folder), "/", extra.name));
      if (keeps) survey_.known_names[extra.folder] = false;
      return keeps;
    });
  }

  // What is left out of backups is in no snapshot, though this one may have something of the same name.
  void KeepExcluded() {
    for (uint32_t entry = 1; entry < tree_.size(); ++entry) {
      const bool other = survey_.states[entry] == EntryState::kReplace && survey_.stamps[entry].inode != 0;
      if (other && IsExcluded(entry)) Keep(entry);
    }
  }

  // Itself as it is there, or a folder above it.
  bool IsExcluded(uint32_t entry) const {
    bool is_folder = std::ranges::binary_search(survey_.blocked, entry);
    for (uint32_t at = entry; at != 0; at = tree_[at].parent, is_folder = true) {
      if (exclude_.Match(tree_.Path(at), is_folder) == IgnoreVerdict::kIgnored) return true;
    }
    return false;
  }

  void KeepForeign() {
    Leftovers leftovers(tree_, target_, get_);
    for (uint32_t entry = 1; entry < tree_.size(); ++entry) {
      const bool other = survey_.states[entry] == EntryState::kReplace && survey_.stamps[entry].inode != 0;
      if (other && !leftovers.Has(entry)) Keep(entry);
    }
  }

  // Of a folder nothing can be restored then.
  void Keep(uint32_t entry) {
    survey_.states[entry] = EntryState::kFailed;
    const int64_t below = tree_[entry].IsFolder() ? tree_.End(entry) - entry - 1 : 0;
    ledger_.ErrnoProblem(entry, "", kChangedMeanwhile, below);
  }

  Result<void> Act(const RestoreWork& work, RestoreScene* scene) {
    const auto will_not_fit = [&](int64_t bytes) {
      return WillNotFit(target_.fd.Get(), request_.target, bytes);
    };
    if (will_not_fit(work.bytes)) {
      if (const std::optional<Error> error = will_not_fit(LeastBytes(work))) return Fail(*error);
    }
    ledger_.SetTotals(work.files, work.bytes);
    if (KeepsSeen())
      OC_TRY_VOID(PosixFiles().WriteAtomic(ResumeMarkerPath(request_.seen_file), marker_.Encode(), false));
    scene->staging.Remove();  // what an earlier one has left
    SpreadInodes spread(scene);
    const OpenedFolders opened = MakeFolders(scene, RemovesExtras() ? &remover_ : nullptr, &spread);
    MakeSmall(work.small, scene);
    std::thread beside = RemoveExtrasBeside();
    ContentWriter(repository_, index_, get_, request_.proven, scene).Write(work.contents);
    if (beside.joinable()) beside.join();
    MakeLinks(work.links, scene);
    scene->undertaker.Wait();
    scene->staging.Remove();
    spread.End();
    if (scene->staging.changed_target()) scene->touched[0] = true;
    FinishFolders(scene, opened);
    if (ledger_.full()) {
      return Fail(DiskFull(target_.fd.Get(), request_.target, work.bytes - ledger_.bytes_done()));
    }
    return ledger_.Outcome();
  }

  // Holes need no space, and what a tree says of a file is only believed as far as it can be true.
  int64_t LeastBytes(const RestoreWork& work) const {
    int64_t bytes = 0;
    for (const uint32_t entry : work.contents) {
      ContentCursor parts(tree_[entry], get_);
      for (auto next = parts.Next(); next && *next && !ledger_.Over(); next = parts.Next()) {
        const ContentPart& part = (*next)->part;
        if (part.kind == ContentPart::Kind::kChunk) bytes += std::min(part.length, kChunkMost);
      }
    }
    return bytes;
  }

  void MakeSmall(const std::vector<uint32_t>& entries, RestoreScene* scene) {
    SharedNumbers numbers(entries.size(), 64);
    RunTeam(entries.size() > 64 ? scene->threads : 1, [&] {
      FileMaker maker(scene);
      for (size_t begin, end; !ledger_.Over() && numbers.Take(&begin, &end);) {
        for (size_t i = begin; i < end; ++i) MakeSmallOne(entries[i], &maker);
      }
    });
  }

  void MakeSmallOne(uint32_t entry, FileMaker* maker) {
    if (survey_.states[entry] == EntryState::kFailed) return;
    if (tree_[entry].IsSymlink()) return maker->MakeSymlink(entry);
    if (survey_.states[entry] == EntryState::kAttributes) return maker->SetOnly(entry);
    maker->MakeWhole(entry, {});
  }

  void MakeLinks(const std::vector<uint32_t>& entries, RestoreScene* scene) {
    FileMaker maker(scene);
    for (const uint32_t entry : entries) {
      if (ledger_.Over()) return;
      if (survey_.states[entry] != EntryState::kFailed) maker.MakeHardLink(entry);
    }
  }

  // Names that are not wanted are in nobody's way, and their removal waits for the disk more than it works.
  std::thread RemoveExtrasBeside() {
    try {
      return std::thread([this] { RemoveExtras(); });
    } catch (const std::system_error&) {
      RemoveExtras();  // no more threads to be had
      return {};
    }
  }

  void RemoveExtras() {
    if (!RemovesExtras()) return;
    std::vector<uint8_t> left(survey_.extras.size());
    SharedNumbers numbers(survey_.extras.size(), 8);
    RunTeam(survey_.extras.size() > 16 ? kRemovers : 1, [&] {
      FolderFds fds(tree_, target_.fd.Get());
      for (size_t begin, end; numbers.Take(&begin, &end);) {
        for (size_t i = begin; i < end && !ledger_.Over(); ++i) {
          const ExtraEntry& extra = survey_.extras[i];
          const int fd = fds.Get(extra.folder);
          left[i] = fd >= 0 && !remover_.Remove(fd, extra.folder, extra.name);
        }
      }
    });
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] != 0) survey_.known_names[survey_.extras[i].folder] = false;
    }
  }

  Result<void> Note(RestoreScene* scene) {
    if (!KeepsSeen()) return {};
    // What changed within the last 100 ms is read again by whoever asks the cache. After a long restore that
    // would be every folder and many files: a moment is waited instead, once.
    if (repository_.clock().MonotonicUs() - began_us_ > kLongUs) std::this_thread::sleep_for(kSettle);
    NoteSeenRequest note{request_.seen_file, repository_.config().id, request_.tree, NowNs(), look_began_ns_};
    note.keep_name = request_.keep_name;
    OC_TRY_VOID(NoteSeen(scene, note));
    return PosixFiles().Remove(ResumeMarkerPath(request_.seen_file));
  }

  RestoreReport Report(const RestoreWork& work) {
    RestoreReport report;
    for (uint32_t entry = 0; entry < tree_.size(); ++entry) {
      const WantedEntry& wanted = tree_[entry];
      if (!wanted.wanted) continue;
      ++report.entries;
      if (!wanted.IsFile()) continue;
      ++report.files;
      report.bytes += wanted.size;
    }
    report.written_files = ledger_.files_done();
    report.written_bytes = ledger_.bytes_done();
    report.same_files = report.files - work.files;
    report.removed = remover_.removed();
    report.failed = ledger_.failed();
    report.kept = ledger_.kept();
    report.problems = ledger_.TakeProblems();
    return report;
  }

  const Repository& repository_;
  const RestoreRequest& request_;
  const ChunkIndex& index_;
  const GetMeta& get_;
  const WantedTree& tree_;
  const TargetFolder& target_;
  const IgnoreRules exclude_;
  RestoreLedger ledger_;
  ChangeGuard guard_;
  ExtraRemover remover_;
  int64_t began_ns_ = 0;  // wall time
  int64_t began_us_ = 0;  // monotonic
  int64_t look_began_ns_ = 0;
  std::optional<Seen> seen_;
  ResumeMarker marker_;
  bool resumes_ = false;
  AttributeRules rules_;
  Survey survey_;
};

Result<std::shared_ptr<const ChunkIndex>> IndexFor(const Repository& repository,
                                                   const RestoreRequest& request) {
  if (request.look != nullptr) return request.look->index;
  OC_TRY(index, ChunkIndex::Load(repository));
  return std::make_shared<const ChunkIndex>(std::move(index));
}

// Whether the look has the tree that is wanted.
bool IsRead(const RestoreRequest& request) {
  return request.look != nullptr && request.paths.empty() && request.look->next &&
         request.look->next_id == request.tree;
}

}  // namespace

Result<RestoreReport> Restore(const Repository& repository, const RestoreRequest& request) {
  if (request.owners && geteuid() != 0) {
    return Fail(ErrorCode::kDenied, "only root can restore owners", "leave them out, or run it as root");
  }
  OC_TRY(index, IndexFor(repository, request));
  ChunkReader reader(repository, *index);
  const GetMeta get = [&reader](const Digest& id) { return reader.Get(id); };
  std::optional<WantedTree> loaded;
  if (!IsRead(request)) {
    OC_TRY(tree, WantedTree::Load(request.tree, {request.paths, request.keep_name, true}, get));
    loaded = std::move(tree);
  }
  const WantedTree& tree = loaded ? *loaded : *request.look->next;
  OC_TRY(target, TargetFolder::Open(request.target, true));
  if (!request.seen_file.empty() && !tree.partial()) MakeRoomForSeen(request.seen_file);
  return Restorer(repository, request, *index, get, tree, target).Run();
}

}  // namespace overcap
