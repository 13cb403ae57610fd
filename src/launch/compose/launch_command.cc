// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/launch_command.h"

#include "base/text.h"
#include "launch/compose/compose.h"

namespace overcap {
namespace {

Result<LaunchCommand> ComposeThrough(const ComposeInputs& in) {
  switch (in.request.launcher.flavour) {
    case Flavour::kSrun:
      return ComposeSrun(in);
    case Flavour::kPals:
      return ComposePals(in);
    case Flavour::kHydra:
      return ComposeHydra(in);
    case Flavour::kOpenMpi:
      return ComposeOpenMpi(in);
    case Flavour::kLocal:
    case Flavour::kSsh:
      break;
  }
  return LaunchCommand{};
}

}  // namespace

const char* FlavourName(Flavour flavour) {
  switch (flavour) {
    case Flavour::kLocal:
      return "local";
    case Flavour::kSsh:
      return "ssh";
    case Flavour::kSrun:
      return "srun";
    case Flavour::kPals:
      return "pals";
    case Flavour::kHydra:
      return "hydra";
    case Flavour::kOpenMpi:
      return "openmpi";
  }
  return "local";
}

bool StartsItself(Flavour flavour) {
  return flavour == Flavour::kLocal || flavour == Flavour::kSsh;
}

Result<LaunchCommand> ComposeLaunch(const LaunchRequest& request) {
  if (request.plan.hosts.empty()) return Fail(ErrorCode::kUsage, "there are no ranks to launch");
  OC_TRY(bind, ParseCpuBind(request.cpu_bind));
  OC_TRY(bind_words, CpuBindWords(bind, request.launcher, request.plan.MostPerHost(), request.oversubscribe));
  if (StartsItself(request.launcher.flavour)) return LaunchCommand{};
  OC_TRY(command, ComposeThrough({request, request.plan, std::move(bind), std::move(bind_words)}));
  command.env.push_back(
      StrCat(kPlanVariable, "=", FlavourName(request.launcher.flavour), ":", RanksPerHostText(request.plan)));
  for (const auto* words : {&request.launcher_args, &request.rank_command})
    command.argv.insert(command.argv.end(), words->begin(), words->end());
  return command;
}

}  // namespace overcap
