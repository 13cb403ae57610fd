// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_contents.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceDiffFlags[] = {kWorkspaceNameFlag};

// Prints change after change, and counts.
class ChangePrinter {
 public:
  explicit ChangePrinter(Output& out) : out_(out) {}

  void Print(char what, const std::string& path) {
    (what == '+' ? added_ : what == '-' ? removed_ : changed_) += 1;
    if (!out_.json()) {
      const Style style = what == '+' ? Style::kGreen : what == '-' ? Style::kRed : Style::kYellow;
      out_.Line(out_.Paint(style, StrCat(what, " ", ToUtf8(path))));
      return;
    }
    JsonWriter json;
    json.BeginObject()
        .Field("path", path)
        .Field("change", what == '+'   ? "added"
                         : what == '-' ? "removed"
                                       : "changed");
    out_.Write(StrCat(added_ + removed_ + changed_ == 1 ? "{\"changes\":[" : ",\n", json.EndObject().Text()));
  }

  void Finish() {
    const int64_t all = added_ + removed_ + changed_;
    if (!out_.json()) {
      out_.Note(all == 0 ? "no difference"
                         : StrCat(added_, " added, ", removed_, " removed, ", changed_, " changed"));
      return;
    }
    out_.Line(StrCat(all == 0 ? "{\"changes\":[" : "", "],\"added\":", added_, ",\"removed\":", removed_,
                     ",\"changed\":", changed_, "}"));
  }

 private:
  Output& out_;
  int64_t added_ = 0, removed_ = 0, changed_ = 0;
};

Result<void> WithFolder(const OpenedWorkspace& opened, const NamedSnapshot& before, ChangePrinter* printer) {
  OC_TRY(here, FindWorkspaceHere(opened.workspaces, opened.found.workspace.name));
  CompareRequest request;
  request.tree = before.record.tree;
  request.folder = here.folder;
  request.seen_file = SeenFileOf(here.folder);
  request.exclude = here.workspace.exclude;
  request.most = std::numeric_limits<int64_t>::max();
  OC_TRY(report, CompareFolder(opened.repository, request));
  for (const FolderDifference& difference : report.differences)
    printer->Print(difference.what, difference.path);
  return {};
}

Result<int> RunWorkspaceDiff(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.Get("--name")));
  const std::string& name = opened.found.workspace.name;
  const std::vector<std::string>& words = args.words();
  OC_TRY(before, opened.repository.Find(name, words.empty() ? "latest" : words[0]));
  ChangePrinter printer(world.out());
  if (words.size() < 2) {
    OC_TRY_VOID(WithFolder(opened, before, &printer));
  } else {
    OC_TRY(after, opened.repository.Find(name, words[1]));
    OC_TRY(contents, SnapshotContents::Open(opened.repository));
    OC_TRY_VOID(contents.Diff(before, after, [&](const SnapshotContents::Change& change) -> Result<void> {
      printer.Print(change.what, change.path);
      return {};
    }));
  }
  printer.Finish();
  return 0;
}

}  // namespace

constinit const Command kWorkspaceDiff = {
    .name = "workspace diff",
    .summary = "what differs between two snapshots, or between one and the folder as it is",
    .usage = "[A [B]] [--name NAME]",
    .flags = kWorkspaceDiffFlags,
    .max_words = 2,
    .run = RunWorkspaceDiff,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
