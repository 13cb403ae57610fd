// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/survey.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/restore/folder_names.h"
#include "snapshot/restore/seen_witness.h"
#include "snapshot/restore/thread_team.h"

namespace overcap {
namespace {

constexpr unsigned kFacts = STATX_BASIC_STATS | STATX_MNT_ID;

uint64_t DeviceOf(const struct statx& status) {
  return (uint64_t{status.stx_dev_major} << 32) | status.stx_dev_minor;
}

struct FolderTask {
  uint32_t folder = 0;
  uint32_t seen = kNoEntry;  // its number in the cache
  bool names_seen = false;   // the cache has all its names
};

// The folders that are still to be looked at. A thread keeps those that it finds to itself, so that it has
// opened what is above them, and hands some over when another has none.
class FolderTasks {
 public:
  void Add(const FolderTask* tasks, size_t count) {
    const std::lock_guard lock(mutex_);
    shared_.insert(shared_.end(), tasks, tasks + count);
    changed_.notify_all();
  }
  // Those that were found first: most is below them.
  void Share(std::vector<FolderTask>* own) {
    if (idle_.load(std::memory_order_relaxed) == 0 || own->size() < 2) return;
    const size_t given = own->size() / 2;
    Add(own->data(), given);
    own->erase(own->begin(), own->begin() + static_cast<std::ptrdiff_t>(given));
  }
  // Waits for some; false when all is done. The caller has none left of those before.
  bool Take(std::vector<FolderTask>* own, bool had_some) {
    std::unique_lock lock(mutex_);
    if (had_some) --busy_;
    ++idle_;
    while (shared_.empty() && busy_ > 0) changed_.wait_for(lock, std::chrono::seconds(1));
    --idle_;
    changed_.notify_all();
    if (shared_.empty()) return false;
    const size_t taken = (shared_.size() + 1) / 2;
    own->assign(shared_.end() - static_cast<std::ptrdiff_t>(taken), shared_.end());
    shared_.resize(shared_.size() - taken);
    ++busy_;
    return true;
  }
  // The folder is not what the cache says: nobody needs to look any further.
  void GiveUp() { given_up_.store(true, std::memory_order_relaxed); }
  bool given_up() const { return given_up_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> given_up_ = false;
  std::atomic<int> idle_ = 0;  // threads that wait
  std::mutex mutex_;           // guards what follows
  std::condition_variable changed_;
  std::vector<FolderTask> shared_;
  int busy_ = 0;
};

// What one thread has found; joined at the end.
struct Findings {
  std::vector<ExtraEntry> extras;
  std::vector<FoundLink> links;
  std::vector<uint32_t> to_read;
  std::vector<uint32_t> blocked;
  std::vector<SurveyFailure> failures;
};

class Surveyor {
 public:
  Surveyor(const WantedTree& tree, int root_fd, const SurveyRequest& request, Survey* survey,
           FolderTasks* tasks)
      : tree_(tree), request_(request), survey_(*survey), tasks_(*tasks), fds_(tree, root_fd) {
    if (request.since_seen) witness_.emplace(request);
    if (statx(root_fd, "", AT_EMPTY_PATH, kFacts, &root_) != 0) root_ = {};
  }

  Findings Run() {
    for (bool had_some = false; tasks_.Take(&own_, had_some); had_some = true) {
      while (!own_.empty()) {
        const FolderTask task = own_.back();
        own_.pop_back();
        if (!Stopped()) Look(task);
        tasks_.Share(&own_);
      }
    }
    return std::move(found_);
  }

  // The folder itself; it is there.
  void LookAtRoot() {
    survey_.device = DeviceOf(root_);
    if (request_.seen != nullptr) {
      SeenEntry seen = request_.seen->root();
      // Without a time, and not said to be exact: what the cache has is not all of the tree, or not as there.
      if (witness_ && seen.stamp.ctime_ns == 0 && (seen.flags & kSeenExact) == 0) tasks_.GiveUp();
      JudgeFolder(0, root_, Known(0, fds_.Get(0), root_, &seen));
    } else {
      JudgeFolder(0, root_, nullptr);
    }
    tasks_.Add(own_.data(), own_.size());
  }

 private:
  bool Stopped() const {
    return tasks_.given_up() || (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed));
  }

  void Failed(uint32_t entry, int error) {
    survey_.states[entry] = EntryState::kFailed;
    found_.failures.push_back({entry, error});
  }

  void Look(const FolderTask& task) {
    const int fd = fds_.Get(task.folder);
    if (fd < 0) return Failed(task.folder, errno);
    SeenCursor cursor;
    if (task.seen != kNoEntry) cursor = request_.seen->Open(task.seen);
    survey_.known_names[task.folder] = task.names_seen;
    seen_only_.clear();
    SeenEntry seen;
    bool more = task.seen != kNoEntry && cursor.Next(&seen);
    for (uint32_t child = tree_.First(task.folder); child < tree_.End(task.folder);
         child = tree_.Next(child)) {
      const std::string_view name = tree_.Name(child);
      for (; more && seen.name < name; more = cursor.Next(&seen)) SeenExtra(task, fd, seen);
      const bool is_seen = more && seen.name == name;
      LookAtEntry(child, fd, is_seen ? &seen : nullptr);
      if (is_seen) more = cursor.Next(&seen);
    }
    for (; more; more = cursor.Next(&seen)) SeenExtra(task, fd, seen);
    if (request_.list_names && !task.names_seen) FindExtras(task.folder, fd);
  }

  // A folder that is as it was has the names that it had, so this one is still there.
  void SeenExtra(const FolderTask& task, int fd, const SeenEntry& seen) {
    if (witness_) {
      seen_only_.push_back(seen.name);
      const std::string path =
          task.folder == 0 ? std::string(seen.name) : StrCat(tree_.Path(task.folder), "/", seen.name);
      if (!witness_->ConfirmAll(fd, seen, path)) return tasks_.GiveUp();
    }
    if (!task.names_seen) return;
    if (request_.list_names) {
      AddExtra(task.folder, {std::string(seen.name), seen.IsFolder()});
    } else {
      survey_.known_names[task.folder] = false;
    }
  }

  void LookAtEntry(uint32_t entry, int fd, SeenEntry* seen) {
    struct statx status;
    constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (statx(fd, tree_.Name(entry), kFlags, kFacts, &status) != 0) {
      if (errno == EACCES && request_.may_chmod && LetSearch(fd)) return LookAtEntry(entry, fd, seen);
      if (errno != ENOENT && errno != ENAMETOOLONG) Failed(entry, errno);
      if (witness_ && seen != nullptr) tasks_.GiveUp();
      return;  // as it was: missing, with all below it
    }
    const WantedEntry& wanted = tree_[entry];
    const SeenStamp noted = seen != nullptr ? seen->stamp : SeenStamp();
    seen = Known(entry, fd, status, seen);
    if (witness_ && seen != nullptr && seen->IsFolder() && !wanted.IsFolder())
      ConfirmBlocking(entry, fd, *seen, noted);
    const unsigned type = wanted.IsFolder() ? S_IFDIR : wanted.IsSymlink() ? S_IFLNK : S_IFREG;
    survey_.stamps[entry] = SeenStamp::Of(status);
    if ((status.stx_mode & S_IFMT) != type) {
      survey_.states[entry] = EntryState::kReplace;
      if (S_ISDIR(status.stx_mode)) found_.blocked.push_back(entry);
    } else if (wanted.IsFolder()) {
      JudgeFolder(entry, status, seen);
    } else if (wanted.IsSymlink()) {
      survey_.states[entry] = JudgeLink(entry, fd, seen);
    } else {
      JudgeRegular(entry, status, seen);
    }
  }

  // What is known of an entry that is there. With a witness: what is sure, or the look ends.
  SeenEntry* Known(uint32_t entry, int fd, const struct statx& status, SeenEntry* seen) {
    if (!witness_) return seen;
    const auto word = seen == nullptr
                          ? SeenWitness::Word::kNo
                          : witness_->Confirm(fd, entry == 0 ? "." : tree_.Name(entry), status, seen);
    names_sure_ = word == SeenWitness::Word::kStamp;
    if (word == SeenWitness::Word::kNo) tasks_.GiveUp();
    return word == SeenWitness::Word::kNo ? nullptr : seen;
  }

  // A folder stands where a file or link should be: all in it will go. It is looked at with the stamp that
  // the cache has: the one that was found there would vouch for names that the cache does not know.
  void ConfirmBlocking(uint32_t entry, int fd, SeenEntry seen, const SeenStamp& noted) {
    seen.stamp = noted;
    if (!witness_->ConfirmAll(fd, seen, tree_.Path(entry))) tasks_.GiveUp();
  }

  // What the cache says is so now: with a witness that was made sure of.
  bool AsSeen(const SeenStamp& stamp, const SeenEntry* seen) const {
    return witness_ ? seen != nullptr : StillAsSeen(stamp, seen, request_.knowledge);
  }

  // Gives the owner the right to look into a folder of his; once is enough.
  bool LetSearch(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_mode & 0100) == 0 &&
           ChmodPathFd(fd, (status.st_mode & 07777) | 0700) == 0;
  }

  void JudgeFolder(uint32_t entry, const struct statx& status, const SeenEntry* seen) {
    const SeenStamp& stamp = survey_.stamps[entry] = SeenStamp::Of(status);
    if (seen != nullptr && !seen->IsFolder()) seen = nullptr;
    const bool as_seen = AsSeen(stamp, seen);
    survey_.plain[entry] = as_seen && seen->xattrs.empty();
    survey_.states[entry] =
        AttributesMatch(tree_[entry], stamp, request_.match) && SameXattrs(entry, as_seen, seen)
            ? EntryState::kSame
            : EntryState::kAttributes;
    survey_.foreign[entry] = status.stx_mnt_id != root_.stx_mnt_id || DeviceOf(status) != DeviceOf(root_);
    own_.push_back({entry, seen != nullptr ? seen->folder : kNoEntry, as_seen && (!witness_ || names_sure_)});
  }

  EntryState JudgeLink(uint32_t entry, int fd, const SeenEntry* seen) {
    const SeenStamp& stamp = survey_.stamps[entry];
    const bool as_seen = AsSeen(stamp, seen) && seen->type == SnapshotEntryType::kSymlink;
    if (as_seen && seen->target != tree_.Target(entry)) return EntryState::kReplace;
    if (!as_seen) {
      const Result<std::string> target = ReadLinkAt(fd, tree_.Name(entry));
      if (!target || *target != tree_.Target(entry)) return EntryState::kReplace;
    }
    // A link is made anew rather than changed: its owner and attributes cannot be set safely one by one.
    const bool same = AttributesMatch(tree_[entry], stamp, request_.match) &&
                      (as_seen ? seen->xattrs == WantedXattrs(entry) : SameXattrsAt(entry, fd));
    return same ? EntryState::kSame : EntryState::kAttributes;
  }

  void JudgeRegular(uint32_t entry, const struct statx& status, const SeenEntry* seen) {
    const WantedEntry& wanted = tree_[entry];
    if (status.stx_nlink > 1 || wanted.IsHardLink() || wanted.has_links) {
      found_.links.push_back({entry, DeviceOf(status), status.stx_ino, status.stx_nlink});
    }
    if (wanted.IsHardLink()) {
      survey_.states[entry] = EntryState::kReplace;  // until it is known what the first of them is
      return;
    }
    const bool same_xattrs = seen != nullptr && seen->xattrs == WantedXattrs(entry);
    // What a witness has made sure of is not too young to be believed.
    const TargetKnowledge knowledge =
        witness_ ? TargetKnowledge{.has_seen = true, .seen_began_ns = INT64_MAX} : request_.knowledge;
    switch (JudgeFile(wanted, survey_.stamps[entry], seen, same_xattrs, knowledge, request_.match)) {
      case FileVerdict::kSame:
        survey_.states[entry] = EntryState::kSame;
        break;
      case FileVerdict::kAttributes:
        survey_.states[entry] = EntryState::kAttributes;
        break;
      case FileVerdict::kReplace:
        survey_.states[entry] = EntryState::kReplace;
        break;
      case FileVerdict::kRead:
        survey_.states[entry] = EntryState::kRead;
        found_.to_read.push_back(entry);
    }
  }

  // As the cache has them. Rare: most have none.
  std::string WantedXattrs(uint32_t entry) {
    const std::vector<ExtendedAttribute>& wanted = tree_.Xattrs(entry);
    return wanted.empty() ? std::string() : EncodeXattrs(wanted);
  }

  bool SameXattrs(uint32_t entry, bool as_seen, const SeenEntry* seen) {
    if (as_seen) return seen->xattrs == WantedXattrs(entry);
    return SameXattrsAt(entry, entry == 0 ? fds_.Get(0) : fds_.Get(tree_[entry].parent));
  }

  bool SameXattrsAt(uint32_t entry, int fd) {
    const FoundXattrs found = ReadXattrsAt(fd, entry == 0 ? "." : tree_.Name(entry), request_.rules);
    return found.error == 0 && found.list == RestoredXattrs(tree_.Xattrs(entry), request_.rules);
  }

  void FindExtras(uint32_t folder, int fd) {
    std::vector<ListedName> names;
    if (!ListNames(fd, request_.may_chmod, &names)) {
      found_.failures.push_back({folder, errno});
      return;
    }
    survey_.known_names[folder] = true;
    uint32_t child = tree_.First(folder);
    for (ListedName& listed : names) {
      while (child < tree_.End(folder) && tree_.Name(child) < std::string_view(listed.name))
        child = tree_.Next(child);
      if (child < tree_.End(folder) && tree_.Name(child) == listed.name) continue;
      if (witness_ && IsNew(folder, listed)) return tasks_.GiveUp();
      AddExtra(folder, std::move(listed));
    }
  }

  // Neither wanted nor seen, and not excluded.
  bool IsNew(uint32_t folder, const ListedName& listed) {
    return !std::binary_search(seen_only_.begin(), seen_only_.end(), std::string_view(listed.name)) &&
           (folder != 0 || listed.name != request_.keep_name) && !Excluded(folder, listed);
  }

  void AddExtra(uint32_t folder, ListedName listed) {
    if (folder == 0 && listed.name == request_.keep_name) return;
    if (Excluded(folder, listed)) {
      survey_.known_names[folder] = false;
    } else {
      found_.extras.push_back({folder, std::move(listed.name), listed.is_folder});
    }
  }

  // Or nothing that a snapshot could have: then, too, it neither counts as a change nor is removed.
  bool Excluded(uint32_t folder, const ListedName& listed) {
    if (listed.is_special) return true;
    if (request_.exclude == nullptr || request_.exclude->Empty()) return false;
    const std::string path = folder == 0 ? listed.name : StrCat(tree_.Path(folder), "/", listed.name);
    return request_.exclude->Match(path, listed.is_folder) == IgnoreVerdict::kIgnored;
  }

  const WantedTree& tree_;
  const SurveyRequest& request_;
  Survey& survey_;
  FolderTasks& tasks_;
  FolderFds fds_;
  struct statx root_ {};
  std::optional<SeenWitness> witness_;
  std::vector<FolderTask> own_;
  std::vector<std::string_view> seen_only_;  // in the folder at hand: names of the cache that are not wanted
  bool names_sure_ = false;                  // the witness's last folder has the names that it had
  Findings found_;
};

template <typename T>
void Append(std::vector<T>* to, std::vector<T>* from) {
  to->insert(to->end(), std::make_move_iterator(from->begin()), std::make_move_iterator(from->end()));
}

}  // namespace

Survey EmptySurvey(size_t entries) {
  Survey survey;
  survey.states.resize(entries, EntryState::kMissing);
  survey.stamps.resize(entries);
  survey.known_names.resize(entries);
  survey.foreign.resize(entries);
  survey.plain.resize(entries);
  return survey;
}

Survey SurveyTarget(const WantedTree& tree, const TargetFolder& target, const SurveyRequest& request) {
  Survey survey = EmptySurvey(tree.size());
  FolderTasks tasks;
  std::mutex mutex;  // guards what the threads hand over
  Surveyor(tree, target.fd.Get(), request, &survey, &tasks).LookAtRoot();
  RunTeam(request.threads, [&] {
    Findings found = Surveyor(tree, target.fd.Get(), request, &survey, &tasks).Run();
    const std::lock_guard lock(mutex);
    Append(&survey.extras, &found.extras);
    Append(&survey.links, &found.links);
    Append(&survey.to_read, &found.to_read);
    Append(&survey.blocked, &found.blocked);
    Append(&survey.failures, &found.failures);
  });
  survey.as_seen = request.since_seen && !tasks.given_up() && survey.failures.empty() &&
                   (request.stop == nullptr || !request.stop->load());
  const auto by_entry = [](const auto& a, const auto& b) { return a.entry < b.entry; };
  std::sort(survey.links.begin(), survey.links.end(), by_entry);
  std::sort(survey.failures.begin(), survey.failures.end(), by_entry);
  std::sort(survey.to_read.begin(), survey.to_read.end());
  std::sort(survey.blocked.begin(), survey.blocked.end());
  return survey;
}

}  // namespace overcap
