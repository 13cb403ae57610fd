// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/policy_apply.h"
#include "control/policy_file.h"

namespace overcap::cli {
namespace {

void PrintJson(const PolicyRendering& rendering, Output& out) {
  JsonWriter json;
  json.BeginObject().Key("files").BeginArray();
  for (const PolicyRendering::File& file : rendering.files)
    json.BeginObject().Field("name", file.name).Field("text", file.text).EndObject();
  json.EndArray().Key("commands").BeginArray();
  for (const std::vector<std::string>& argv : rendering.commands) {
    json.BeginArray();
    for (const std::string& word : argv) json.String(word);
    json.EndArray();
  }
  json.EndArray().Field("notes", rendering.notes).EndObject();
  out.Json(json.Text());
}

Result<int> RunPolicyRender(World& world, const Args& args) {
  OC_TRY(policy, ReadPolicyFile(args.words()[1]));
  OC_TRY(rendering, RenderPolicy(args.words()[0], policy));
  Output& out = world.out();
  if (out.json()) {
    PrintJson(rendering, out);
    return 0;
  }
  for (const PolicyRendering::File& file : rendering.files) {
    out.Line(StrCat("# ---- ", file.name));
    out.Write(file.text);
    out.Line("");
  }
  out.Line("# ---- commands");
  for (const std::vector<std::string>& argv : rendering.commands) out.Line(ShellJoin(argv));
  out.Line("");
  out.Line("# ---- what it cannot do, or does otherwise");
  for (const std::string& note : rendering.notes) out.Line(StrCat("# - ", note));
  return 0;
}

}  // namespace

constinit const Command kPolicyRender = {
    .name = "policy render",
    .summary = "a policy in the words of a scheduler: its files, its commands, and what it cannot do",
    .usage = "slurm FILE",
    .min_words = 2,
    .max_words = 2,
    .run = RunPolicyRender,
    .group = CommandGroup::kSetup,
    .without_config = true,
};

}  // namespace overcap::cli
