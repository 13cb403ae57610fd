// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <thread>

#include "base/text.h"
#include "snapshot/path_order.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/restore/content_check.h"
#include "snapshot/restore/folder_look.h"
#include "snapshot/restore/folder_names.h"
#include "snapshot/restore/link_verdict.h"
#include "snapshot/restore/restore.h"
#include "snapshot/restore/survey.h"
#include "snapshot/restore/thread_team.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {
namespace {

// Turns what a survey found into differences.
class FolderDiffer {
 public:
  FolderDiffer(const WantedTree& tree, const TargetFolder& folder, const CompareRequest& request,
               const IgnoreRules& exclude)
      : tree_(tree), request_(request), exclude_(exclude), fds_(tree, folder.fd.Get()) {}

  CompareReport Run(const Survey& survey) {
    for (uint32_t entry = 1; entry < tree_.size(); ++entry) {
      const EntryState state = survey.states[entry];
      if (state == EntryState::kSame) continue;
      Note(state == EntryState::kMissing ? '-' : '~', tree_.Path(entry), survey.stamps[entry].mtime_ns);
    }
    for (const ExtraEntry& extra : survey.extras) {
      const std::string path =
          extra.folder == 0 ? extra.name : StrCat(tree_.Path(extra.folder), "/", extra.name);
      AddExtra(fds_.Get(extra.folder), extra.name, path, extra.is_folder);
    }
    // What is in a folder that stands where a file or link should be is only in the folder, too.
    for (const uint32_t entry : survey.blocked)
      AddBelow(fds_.Get(tree_[entry].parent), tree_.Name(entry), tree_.Path(entry));
    auto& all = report_.differences;
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return PathBefore(a.path, b.path); });
    if (static_cast<int64_t>(all.size()) > request_.most) all.resize(static_cast<size_t>(request_.most));
    return std::move(report_);
  }

 private:
  void Note(char what, std::string path, int64_t mtime_ns) {
    int64_t& count = what == '-' ? report_.removed : what == '+' ? report_.added : report_.changed;
    if (count++ < request_.most) report_.differences.push_back({std::move(path), what});
    if (what != '-') report_.newest_mtime_ns = std::max(report_.newest_mtime_ns, mtime_ns);
  }

  // With all that is in it.
  void AddExtra(int folder_fd, const std::string& name, const std::string& path, bool is_folder) {
    struct statx status;
    if (folder_fd < 0 || statx(folder_fd, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                               STATX_BASIC_STATS, &status) != 0) {
      return;
    }
    Note('+', path, SeenStamp::Of(status).mtime_ns);
    if (is_folder) AddBelow(folder_fd, name, path);
  }

  void AddBelow(int folder_fd, const std::string& name, const std::string& path) {
    if (folder_fd < 0) return;
    const Fd fd(openat(folder_fd, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    std::vector<ListedName> names;
    if (!fd || !ListNames(fd.Get(), false, &names)) return;
    for (const ListedName& listed : names) {
      const std::string below = StrCat(path, "/", listed.name);
      if (listed.is_special || exclude_.Match(below, listed.is_folder) == IgnoreVerdict::kIgnored) continue;
      AddExtra(fd.Get(), listed.name, below, listed.is_folder);
    }
  }

  const WantedTree& tree_;
  const CompareRequest& request_;
  const IgnoreRules& exclude_;
  FolderFds fds_;
  CompareReport report_;
};

// One look at a folder: what it needs is read side by side.
class FolderLooker {
 public:
  FolderLooker(const Repository& repository, const CompareRequest& request, const TargetFolder& folder)
      : repository_(repository), request_(request), folder_(folder), exclude_(Join(request.exclude, "\n")) {
    look_.began_ns = repository.clock().WallUs() * 1000;
  }

  Result<FolderLook> Run() {
    std::jthread beside([this] { LoadSeen(); });
    OC_TRY(index, ChunkIndex::Load(repository_));
    look_.index = std::make_shared<const ChunkIndex>(std::move(index));
    reader_.emplace(repository_, *look_.index);
    if (request_.next && request_.next_by_cache) LoadNext();
    beside.join();
    if (LooksByCache() && LookByCache()) return std::move(look_);
    return LookByTree();
  }

 private:
  void LoadSeen() {
    if (request_.seen_file.empty() || request_.read_all) return;
    seen_ = Seen::Load(request_.seen_file, repository_.config().id, folder_.path);
  }

  void LoadNext() {
    look_.next_id = *request_.next;
    if (auto next = WantedTree::Load(look_.next_id, {{}, request_.keep_name, true}, get_))
      look_.next = *std::move(next);
  }

  SurveyRequest NewSurvey(AttributeMatch match, bool owners) const {
    SurveyRequest survey;
    survey.seen = seen_ ? &*seen_ : nullptr;
    survey.knowledge = {seen_.has_value(), seen_ ? seen_->began_ns() : 0, false, 0};
    survey.match = match;
    survey.rules = AttributeRules::OfThisProcess(owners);
    survey.list_names = true;
    survey.exclude = &exclude_;
    survey.keep_name = request_.keep_name;
    survey.threads = TeamSize(0);
    return survey;
  }

  // The cache is of the very tree that the folder is compared with.
  bool LooksByCache() const {
    return look_.next && !look_.next->partial() && seen_ && seen_->tree() == request_.tree;
  }

  // False when the folder is not what the cache says, or that is not sure.
  bool LookByCache() {
    SurveyRequest survey = NewSurvey({.times = true, .owners = request_.next_owners}, request_.next_owners);
    survey.since_seen = true;
    survey.get = &get_;
    Survey found = SurveyTarget(*look_.next, folder_, survey);
    if (!found.as_seen) return false;
    JudgeLinks(*look_.next, &found);
    look_.next_survey = std::move(found);
    return true;
  }

  Result<FolderLook> LookByTree() {
    std::jthread beside;
    if (request_.next && !look_.next) beside = std::jthread([this] { LoadNext(); });
    OC_TRY(tree, WantedTree::Load(request_.tree, {{}, request_.keep_name}, get_));
    if (beside.joinable()) beside.join();
    look_.tree = std::move(tree);
    const SurveyRequest survey = NewSurvey({.times = false, .owners = false}, false);
    look_.survey = SurveyTarget(look_.tree, folder_, survey);
    CheckContents(
        look_.tree, folder_, survey, get_, [] { return false; }, &look_.survey);
    JudgeLinks(look_.tree, &look_.survey);
    look_.report = FolderDiffer(look_.tree, folder_, request_, exclude_).Run(look_.survey);
    return std::move(look_);
  }

  const Repository& repository_;
  const CompareRequest& request_;
  const TargetFolder& folder_;
  const IgnoreRules exclude_;
  FolderLook look_;
  std::optional<ChunkReader> reader_;
  const GetMeta get_ = [this](const Digest& id) { return reader_->Get(id); };
  std::optional<Seen> seen_;
};

}  // namespace

Result<FolderLook> LookAtFolder(const Repository& repository, const CompareRequest& request) {
  OC_TRY(folder, TargetFolder::Open(request.folder, false));
  return FolderLooker(repository, request, folder).Run();
}

Result<CompareReport> CompareFolder(const Repository& repository, const CompareRequest& request) {
  OC_TRY(look, LookAtFolder(repository, request));
  return std::move(look.report);
}

}  // namespace overcap
