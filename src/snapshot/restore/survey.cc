// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/survey.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/restore/folder_names.h"
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

// The folders that are still to be looked at.
class FolderTasks {
 public:
  void Add(std::vector<FolderTask>* tasks) {
    if (tasks->empty()) return;
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), tasks->begin(), tasks->end());
    tasks->clear();
    changed_.notify_all();
  }
  // False when all is done. The task before counts as done.
  bool Next(FolderTask* task, bool had_one) {
    std::unique_lock lock(mutex_);
    if (had_one) --busy_;
    while (waiting_.empty() && busy_ > 0) changed_.wait_for(lock, std::chrono::seconds(1));
    if (waiting_.empty()) {
      changed_.notify_all();
      return false;
    }
    *task = waiting_.back();
    waiting_.pop_back();
    ++busy_;
    return true;
  }

 private:
  std::mutex mutex_;  // guards all of it
  std::condition_variable changed_;
  std::vector<FolderTask> waiting_;
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
    if (statx(root_fd, "", AT_EMPTY_PATH, kFacts, &root_) != 0) root_ = {};
  }

  Findings Run() {
    FolderTask task;
    bool had_one = false;
    while (tasks_.Next(&task, had_one)) {
      had_one = true;
      if (request_.stop == nullptr || !request_.stop->load(std::memory_order_relaxed)) Look(task);
      tasks_.Add(&below_);
    }
    return std::move(found_);
  }

  // The folder itself; it is there.
  void LookAtRoot() {
    survey_.device = DeviceOf(root_);
    JudgeFolder(0, root_, request_.seen != nullptr ? &request_.seen->root() : nullptr);
    tasks_.Add(&below_);
  }

 private:
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
    SeenEntry seen;
    bool more = task.seen != kNoEntry && cursor.Next(&seen);
    for (uint32_t child = tree_.First(task.folder); child < tree_.End(task.folder);
         child = tree_.Next(child)) {
      const std::string_view name = tree_.Name(child);
      for (; more && seen.name < name; more = cursor.Next(&seen)) SeenExtra(task, seen);
      const bool is_seen = more && seen.name == name;
      LookAtEntry(child, fd, is_seen ? &seen : nullptr);
      if (is_seen) more = cursor.Next(&seen);
    }
    for (; more; more = cursor.Next(&seen)) SeenExtra(task, seen);
    if (request_.list_names && !task.names_seen) FindExtras(task.folder, fd);
  }

  // A folder that is as it was has the names that it had, so this one is still there.
  void SeenExtra(const FolderTask& task, const SeenEntry& seen) {
    if (!task.names_seen) return;
    if (request_.list_names) {
      AddExtra(task.folder, {std::string(seen.name), seen.IsFolder()});
    } else {
      survey_.known_names[task.folder] = false;
    }
  }

  void LookAtEntry(uint32_t entry, int fd, const SeenEntry* seen) {
    struct statx status;
    constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (statx(fd, tree_.Name(entry), kFlags, kFacts, &status) != 0) {
      if (errno == EACCES && request_.may_chmod && LetSearch(fd)) return LookAtEntry(entry, fd, seen);
      if (errno != ENOENT && errno != ENAMETOOLONG) Failed(entry, errno);
      return;  // as it was: missing, with all below it
    }
    const WantedEntry& wanted = tree_[entry];
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

  // Gives the owner the right to look into a folder of his; once is enough.
  bool LetSearch(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_mode & 0100) == 0 &&
           ChmodPathFd(fd, (status.st_mode & 07777) | 0700) == 0;
  }

  void JudgeFolder(uint32_t entry, const struct statx& status, const SeenEntry* seen) {
    const SeenStamp& stamp = survey_.stamps[entry] = SeenStamp::Of(status);
    if (seen != nullptr && !seen->IsFolder()) seen = nullptr;
    const bool as_seen = StillAsSeen(stamp, seen, request_.knowledge);
    survey_.states[entry] =
        AttributesMatch(tree_[entry], stamp, request_.match) && SameXattrs(entry, as_seen, seen)
            ? EntryState::kSame
            : EntryState::kAttributes;
    survey_.foreign[entry] = status.stx_mnt_id != root_.stx_mnt_id || DeviceOf(status) != DeviceOf(root_);
    below_.push_back({entry, seen != nullptr ? seen->folder : kNoEntry, as_seen});
  }

  EntryState JudgeLink(uint32_t entry, int fd, const SeenEntry* seen) {
    const SeenStamp& stamp = survey_.stamps[entry];
    const bool as_seen =
        StillAsSeen(stamp, seen, request_.knowledge) && seen->type == SnapshotEntryType::kSymlink;
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
    switch (JudgeFile(wanted, survey_.stamps[entry], seen, same_xattrs, request_.knowledge, request_.match)) {
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
      AddExtra(folder, std::move(listed));
    }
  }

  void AddExtra(uint32_t folder, ListedName listed) {
    if (folder == 0 && listed.name == request_.keep_name) return;
    if (Excluded(folder, listed)) {
      survey_.known_names[folder] = false;
    } else {
      found_.extras.push_back({folder, std::move(listed.name), listed.is_folder});
    }
  }

  bool Excluded(uint32_t folder, const ListedName& listed) {
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
  std::vector<FolderTask> below_;
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
  const auto by_entry = [](const auto& a, const auto& b) { return a.entry < b.entry; };
  std::sort(survey.links.begin(), survey.links.end(), by_entry);
  std::sort(survey.failures.begin(), survey.failures.end(), by_entry);
  std::sort(survey.to_read.begin(), survey.to_read.end());
  std::sort(survey.blocked.begin(), survey.blocked.end());
  return survey;
}

}  // namespace overcap
