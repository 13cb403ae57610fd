// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/commands/person_words.h"

namespace overcap::cli {
namespace {

Result<int> RunSsh(World& world, const Args& args) {
  OC_TRY(words, ReadBesideWords(args));
  return RunBeside(world, "ssh", words);
}

}  // namespace

constinit const Command kSsh = {
    .name = "ssh",
    .summary = "a shell inside a running job or allocation",
    .usage = "JOB|NAME [-w NODE] [CMD...]",
    .flags = kBesideFlags,
    .min_words = 1,
    .takes_command = true,
    .run = RunSsh,
    .job_words = true,
};

}  // namespace overcap::cli
