// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launch/site/site.h"
#include "sys/variables.h"

namespace overcap {

// What `overcap_setup_python` has to do at a site, one step per line, "STEP VALUE": site, module_path,
// module, conda_root, conda_environment, conda, python, venv; and conda_if_found where the site says nothing
// of Python. Values hold no newline. Pure.
std::string PythonPlan(const std::optional<SiteFacts>& site);

// The plan for this machine.
Result<std::string> PythonPlanHere(const Variables& variables);

}  // namespace overcap
