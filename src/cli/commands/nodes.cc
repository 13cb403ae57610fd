// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/picture_words.h"
#include "cli/table.h"
#include "cli/watch.h"
#include "control/nodes_table.h"

namespace overcap::cli {
namespace {

constexpr Flag kNodesFlags[] = {
    {"--watch", "-w", "", "again and again, until Ctrl-C"},
};

Style StyleOf(const PictureNode& node) {
  return node.usable ? Style::kPlain : node.down ? Style::kRed : Style::kYellow;
}

std::string NodesText(const ClusterPicture& picture, int width, bool color) {
  Table table({{"NODE"},
               {"STATE"},
               {"GPUS"},
               {"CPUS", true},
               {"LOAD", true},
               {"MEMORY", true},
               {"WHO", false, true},
               {"REASON", false, true}});
  for (const PictureNode& node : picture.nodes) {
    NodeCells cells = CellsOf(node);
    table.AddRow({cells.node, cells.state, cells.gpus, cells.cpus, cells.load, cells.memory, cells.users,
                  cells.reason},
                 {Style::kPlain, StyleOf(node)});
  }
  return StrCat(table.Render(width, color), NodesSummary(picture), "\n");
}

Result<std::string> Frame(World& world, bool watched, int width, bool color) {
  const PictureAges ages = watched ? PictureAges{kWatchAsideAgeUs, kWatchAgeUs} : PictureAges{kWatchAgeUs, 0};
  OC_TRY(picture, Look(world, ages));
  const int64_t now_us = world.clock().WallUs();
  if (world.out().json()) return NodesToJson(picture, now_us) + "\n";
  picture.taken_us = picture.nodes_taken_us;
  return NodesText(picture, width, color) + PictureNotes(picture, now_us, watched);
}

Result<int> RunNodes(World& world, const Args& args) {
  if (args.Has("--watch")) {
    return Watch(world, [&](int width, bool color) { return Frame(world, true, width, color); });
  }
  const Terminal& terminal = world.out().terminal();
  OC_TRY(text, Frame(world, false, terminal.width, terminal.out_color));
  world.out().Write(text);
  return 0;
}

}  // namespace

constinit const Command kNodes = {
    .name = "nodes",
    .summary = "the nodes of the cluster: GPUs, CPUs and memory in use, state, who",
    .usage = "[--watch]",
    .flags = kNodesFlags,
    .max_words = 0,
    .run = RunNodes,
};

}  // namespace overcap::cli
