// SPDX-License-Identifier: Apache-2.0
// GpuOptions() of sbatch_script.h.
#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/sbatch_script.h"
#include "model/gpu_type.h"

namespace overcap {
namespace {

// How the types that fit are asked for: by gres ("a40"), by features ("a40|rtx_6000"), or not at all.
struct TypeChoice {
  std::string gres;
  std::string constraint;
};

std::string KnownNames(const std::vector<SlurmGpuType>& types) {
  std::vector<std::string> names;
  for (const SlurmGpuType& type : types) names.push_back(type.gres.empty() ? type.feature : type.gres);
  return Join(names, ", ");
}

Result<bool> Matches(const std::string& expression, const SlurmGpuType& type) {
  for (const std::string& name : {type.gres, type.feature}) {
    if (name.empty()) continue;
    OC_TRY(matches, GpuTypeMatches(expression, name));
    if (matches) return true;
  }
  return false;
}

Result<TypeChoice> ChooseAmongKnown(const std::string& expression, const SbatchSettings& settings) {
  std::vector<const SlurmGpuType*> fit;
  for (const SlurmGpuType& type : settings.gpu_types) {
    OC_TRY(matches, Matches(expression, type));
    if (matches) fit.push_back(&type);
  }
  if (fit.empty()) {
    return Fail(ErrorCode::kUsage, StrCat("no GPU here is of type ", Quoted(expression)),
                StrCat("this cluster has ", KnownNames(settings.gpu_types)));
  }
  if (fit.size() == settings.gpu_types.size()) return TypeChoice{};
  const bool features =
      std::none_of(fit.begin(), fit.end(), [](auto* type) { return type->feature.empty(); });
  const bool by_gres =
      fit.size() == 1 && !fit[0]->gres.empty() && !(settings.gpu_type_as_constraint && features);
  if (by_gres) return TypeChoice{fit[0]->gres, ""};
  if (!features) {
    return Fail(ErrorCode::kUsage,
                StrCat("GPU type ", Quoted(expression),
                       " stands for several types, which only nodes with features can be asked for"),
                "name one type, or ask the cluster's administrators for node features");
  }
  TypeChoice choice;
  for (const SlurmGpuType* type : fit) {
    choice.constraint += StrCat(choice.constraint.empty() ? "" : "|", type->feature);
  }
  return choice;
}

bool IsNameList(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '|' || c == ',';
  });
}

// Nobody told which types there are: what the user wrote goes to Slurm, if it can be said there at all.
Result<TypeChoice> ChooseUnknown(const std::string& expression, const SbatchSettings& settings) {
  OC_TRY_VOID(CheckGpuTypeExpression(expression));
  if (!IsNameList(expression)) {
    return Fail(ErrorCode::kUsage,
                StrCat("GPU type ", Quoted(expression), " needs the list of types that this cluster has"),
                "name the types themselves: 'a40|rtx_6000'");
  }
  std::string names = expression;
  std::replace(names.begin(), names.end(), ',', '|');
  if (names.find('|') == std::string::npos && !settings.gpu_type_as_constraint) return TypeChoice{names, ""};
  return TypeChoice{"", names};
}

// Whether the user's own words ask for GPUs in a way that goes with no number per node.
bool AskForGpus(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& word) {
    return word.starts_with("--gpus-per-") ||
           (word.starts_with("--tres-per-task=") && word.find("gpu") != std::string::npos);
  });
}

}  // namespace

Result<std::vector<std::string>> GpuOptions(const Resources& resources, const SbatchSettings& settings) {
  std::vector<std::string> options;
  TypeChoice choice;
  if (resources.gpus > 0 && !resources.gpu_type.empty()) {
    OC_TRY(chosen, settings.gpu_types.empty() ? ChooseUnknown(resources.gpu_type, settings)
                                              : ChooseAmongKnown(resources.gpu_type, settings));
    choice = std::move(chosen);
  }
  // Per node wherever possible: a step inherits that, and Slurm 22.05 forgets typed GPUs per task.
  if (resources.gpus > 0 && !AskForGpus(settings.extra_args)) {
    const bool even = resources.nodes > 0 && resources.gpus % resources.nodes == 0;
    const std::string type = choice.gres.empty() ? "" : choice.gres + ":";
    options.push_back(even ? StrCat("--gpus-per-node=", type, resources.gpus / resources.nodes)
                           : StrCat("--gpus=", type, resources.gpus));
  }
  const bool both = !choice.constraint.empty() && !settings.constraint.empty();
  const std::string constraint = both ? StrCat("(", settings.constraint, ")&(", choice.constraint, ")")
                                      : settings.constraint + choice.constraint;
  if (!constraint.empty()) options.push_back(StrCat("--constraint=", constraint));
  return options;
}

}  // namespace overcap
