// SPDX-License-Identifier: Apache-2.0
#include "control/nodes_table.h"

#include <cmath>
#include <cstdio>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "control/picture_json.h"
#include "model/picture_fit.h"

namespace overcap {
namespace {

std::string Tenths(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string GpusText(const PictureNode& node) {
  std::vector<std::string> parts;
  for (const TypedGpus& kind : node.gpus) {
    parts.push_back(StrCat(GpuCountOf(node.gpus_used, kind.type), "/", kind.count,
                           kind.type.empty() ? "" : " ", kind.type));
  }
  return Join(parts, ", ");
}

}  // namespace

NodeCells CellsOf(const PictureNode& node) {
  constexpr double kGiB = 1 << 30;
  NodeCells cells;
  cells.node = node.name, cells.state = node.state;
  cells.gpus = GpusText(node);
  cells.cpus = StrCat(node.cpus_used, "/", node.cpus);
  if (node.load >= 0) cells.load = Tenths(node.load);
  if (node.mem_bytes > 0) {
    cells.memory = StrCat(Tenths(static_cast<double>(node.mem_used) / kGiB), "/",
                          Tenths(static_cast<double>(node.mem_bytes) / kGiB), "G");
  }
  cells.users = Join(node.users, ", ");
  cells.reason = node.reason;
  return cells;
}

std::string NodesSummary(const ClusterPicture& picture) {
  const GpuRoom room = GpuRoomOf(picture, "", "");
  int away = 0;
  for (const PictureNode& node : picture.nodes) away += node.usable ? 0 : 1;
  std::string text = CountOf(static_cast<int64_t>(picture.nodes.size()), "node");
  if (away > 0) text += StrCat(", ", away, away == 1 ? " takes no jobs" : " take no jobs");
  if (room.total == 0) return text;
  text += StrCat("; ", CountOf(room.total, "GPU"), ", ", room.free, " free");
  if (room.away > 0) text += StrCat(", ", room.away, " on nodes that take no jobs");
  return text;
}

std::string NodesToJson(const ClusterPicture& picture, int64_t now_us) {
  JsonWriter json;
  json.BeginObject();
  WritePictureAge(picture, now_us, &json);
  json.Field("nodes_taken", FormatTimeUtc(picture.nodes_taken_us));
  json.Key("nodes").BeginArray();
  for (const PictureNode& node : picture.nodes) {
    json.BeginObject().Field("name", node.name).Field("state", node.state).Field("usable", node.usable);
    json.Field("down", node.down).Field("reason", node.reason);
    WriteGpus(node.gpus, &json.Key("gpus"));
    WriteGpus(node.gpus_used, &json.Key("gpus_used"));
    json.Field("cpus", node.cpus).Field("cpus_used", node.cpus_used);
    node.load < 0 ? json.Key("load").Null() : json.Field("load", node.load);
    json.Field("mem_bytes", node.mem_bytes).Field("mem_used", node.mem_used);
    json.Field("users", node.users).Field("partitions", node.partitions).Field("features", node.features);
    json.EndObject();
  }
  return json.EndArray().EndObject().Take();
}

}  // namespace overcap
