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
    if (!is_folder) return;
    const Fd fd(openat(folder_fd, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    std::vector<ListedName> names;
    if (!fd || !ListNames(fd.Get(), false, &names)) return;
    for (const ListedName& listed : names) {
      const std::string below = StrCat(path, "/", listed.name);
      if (exclude_.Match(below, listed.is_folder) == IgnoreVerdict::kIgnored) continue;
      AddExtra(fd.Get(), listed.name, below, listed.is_folder);
    }
  }

  const WantedTree& tree_;
  const CompareRequest& request_;
  const IgnoreRules& exclude_;
  FolderFds fds_;
  CompareReport report_;
};

}  // namespace

Result<FolderLook> LookAtFolder(const Repository& repository, const CompareRequest& request) {
  OC_TRY(folder, TargetFolder::Open(request.folder, false));
  FolderLook look;
  OC_TRY(index, ChunkIndex::Load(repository));
  look.index = std::make_shared<const ChunkIndex>(std::move(index));
  ChunkReader reader(repository, *look.index);
  const GetMeta get = [&reader](const Digest& id) { return reader.Get(id); };
  std::jthread beside;
  if (request.next) {
    look.next_id = *request.next;
    beside = std::jthread([&] {
      if (auto next = WantedTree::Load(look.next_id, {{}, request.keep_name, true}, get))
        look.next = *std::move(next);
    });
  }
  OC_TRY(tree, WantedTree::Load(request.tree, {{}, request.keep_name}, get));
  if (request.next) beside.join();
  look.tree = std::move(tree);
  std::optional<Seen> seen;
  if (!request.seen_file.empty() && !request.read_all) {
    seen = Seen::Load(request.seen_file, repository.config().id, folder.path);
  }
  const IgnoreRules exclude(Join(request.exclude, "\n"));
  SurveyRequest survey;
  survey.seen = seen ? &*seen : nullptr;
  survey.knowledge = {seen.has_value(), seen ? seen->began_ns() : 0, false, 0};
  survey.match = {.times = false, .owners = false};
  survey.rules = AttributeRules::OfThisProcess(false);
  survey.list_names = true;
  survey.exclude = &exclude;
  survey.keep_name = request.keep_name;
  survey.threads = TeamSize(0);
  look.survey = SurveyTarget(look.tree, folder, survey);
  CheckContents(
      look.tree, folder, survey, get, [] { return false; }, &look.survey);
  JudgeLinks(look.tree, &look.survey);
  look.report = FolderDiffer(look.tree, folder, request, exclude).Run(look.survey);
  return look;
}

Result<CompareReport> CompareFolder(const Repository& repository, const CompareRequest& request) {
  OC_TRY(look, LookAtFolder(repository, request));
  return std::move(look.report);
}

}  // namespace overcap
