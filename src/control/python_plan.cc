// SPDX-License-Identifier: Apache-2.0
#include "control/python_plan.h"

#include "base/text.h"
#include "sys/own_host_name.h"

namespace overcap {
namespace {

void Add(std::string* plan, std::string_view step, std::string_view value) {
  if (!value.empty()) *plan += StrCat(step, " ", value, "\n");
}

}  // namespace

std::string PythonPlan(const std::optional<SiteFacts>& site) {
  std::string plan;
  if (!site) return "conda_if_found\n";
  Add(&plan, "site", site->name);
  for (const std::string& path : site->module_paths) Add(&plan, "module_path", path);
  for (const std::string& module : site->modules) Add(&plan, "module", module);
  Add(&plan, "conda_root", site->python.conda_root);
  Add(&plan, "conda_environment", site->python.conda_environment);
  Add(&plan, "conda", site->python.conda);
  if (site->modules.empty() && site->python.conda.empty() && site->python.program.empty()) {
    plan += "conda_if_found\n";
  }
  Add(&plan, "python", site->python.program);
  Add(&plan, "venv", site->python.venv);
  return plan;
}

Result<std::string> PythonPlanHere(const Variables& variables) {
  OC_TRY(site, FindSite(OwnHostName(), variables, DefaultSitePlaces(variables)));
  return PythonPlan(site);
}

}  // namespace overcap
