// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/prune_survey.h"

#include "base/text.h"
#include "snapshot/repository/code_pin.h"

namespace overcap {
namespace {

// Others may put and remove while we read. What is missing again and again is lost; a snapshot that came
// after the index was read is read the next time, when yet another may have come.
constexpr int kTriesOfOne = 5, kTries = 1000;

Result<std::vector<LiveTree>> ListTrees(const Repository& repository, const PruneOptions& options) {
  std::vector<std::string> damage;
  OC_TRY(snapshots, repository.Snapshots("", &damage));
  if (!damage.empty()) {
    return Fail(ErrorCode::kCorrupt,
                StrCat("a snapshot cannot be read, so nothing is removed: ", damage.front()),
                "overcap workspace verify");
  }
  std::vector<LiveTree> trees;
  for (const NamedSnapshot& snapshot : snapshots) {
    trees.push_back({snapshot.record.tree,
                     StrCat("snapshot '", snapshot.ShortId(), "' of '", snapshot.key.workspace, "'")});
  }
  OC_TRY(code, ListCodePins(repository));
  for (const CodePin& pin : code) trees.push_back({pin.tree, StrCat("captured code '", pin.tree.Hex(), "'")});
  for (const Digest& tree : options.also_live) trees.push_back({tree, StrCat("'", tree.Hex(), "'")});
  if (options.list_also_live) {
    OC_TRY(more, options.list_also_live());
    for (const Digest& tree : more) trees.push_back({tree, StrCat("'", tree.Hex(), "'")});
  }
  return trees;
}

Result<RepositorySurvey> SurveyOnce(const Repository& repository, const PruneOptions& options) {
  RepositorySurvey survey;
  OC_TRY(condemned, ListCondemned(repository));
  OC_TRY_VOID(AllReadable(condemned));
  survey.condemned = std::move(condemned);
  ChunkIndex::LoadOptions load;
  load.also_condemned = survey.condemned.Packs();
  OC_TRY(index, ChunkIndex::Load(repository, load, &survey.report));
  survey.index = std::move(index);
  OC_TRY(trees, ListTrees(repository, options));
  OC_TRY(live, FindLiveChunks(repository, survey.index, trees));
  survey.live = std::move(live);
  return survey;
}

}  // namespace

Result<RepositorySurvey> SurveyRepository(const Repository& repository, const PruneOptions& options) {
  std::string missing;
  for (int tries = 1, of_one = 1;; ++tries) {
    Result<RepositorySurvey> survey = SurveyOnce(repository, options);
    if (survey || survey.error().code != ErrorCode::kNotFound) return survey;
    of_one = survey.error().message == missing ? of_one + 1 : 1;
    missing = survey.error().message;
    if (of_one == kTriesOfOne) return Fail(ErrorCode::kCorrupt, missing, "overcap workspace verify");
    if (tries == kTries) {
      return Fail(ErrorCode::kConflict, "snapshots come faster than they can be read", "try again later");
    }
  }
}

}  // namespace overcap
