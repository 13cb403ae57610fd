// SPDX-License-Identifier: Apache-2.0
#include "control/python_plan.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(PythonPlan, LooksForCondaWhereNobodySaysAnything) {
  EXPECT_EQ(PythonPlan(std::nullopt), "conda_if_found\n");
  SiteFacts site;
  site.name = "lab";
  EXPECT_EQ(PythonPlan(site), "site lab\nconda_if_found\n");
}

TEST(PythonPlan, LoadsModulesBeforeItActivatesConda) {
  SiteFacts site;
  site.name = "polaris";
  site.module_paths = {"/soft/my modules"};
  site.modules = {"gcc", "conda"};
  site.python = {"python3.12", "conda", "/soft/conda", "base", "ours"};
  EXPECT_EQ(PythonPlan(site),
            "site polaris\nmodule_path /soft/my modules\nmodule gcc\nmodule conda\nconda_root /soft/conda\n"
            "conda_environment base\nconda conda\npython python3.12\nvenv ours\n");
}

TEST(PythonPlan, APythonOfTheSiteIsEnough) {
  SiteFacts site;
  site.name = "lab";
  site.python.program = "/opt/python/bin/python3";
  EXPECT_EQ(PythonPlan(site), "site lab\npython /opt/python/bin/python3\n");
}

}  // namespace
}  // namespace overcap
