// SPDX-License-Identifier: Apache-2.0
// What a site file says about the machine we are on (docs/formats/site-file.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// An empty value means that the file says nothing about it: what is detected counts then.
struct SiteFacts {
  std::string name;    // "polaris"
  std::string file;    // where it stands; "built in" for those that come with the program
  std::string reason;  // "host name 'x3005c0s1b0n0' fits 'x3???c*' of the built-in site 'polaris'"

  // What every launch there needs.
  int gpus = -1;                           // on each host
  std::string gpu_type;                    // "a100"
  int slots = 0;                           // ranks that a host takes, whatever its GPUs
  std::string launcher;                    // srun, mpiexec, mpirun, ssh or local
  std::string launcher_program;            // "/opt/cray/pals/bin/mpiexec"; else the one on PATH
  std::vector<std::string> launcher_args;  // handed to it as they are, before those of the user
  std::string cpu_bind;                    // as --cpu-bind takes it
  std::map<std::string, std::string>
      env;  // set for the ranks where the user's environment has no such variable
  std::optional<std::vector<std::string>> ssh_options;  // in the place of ours

  // What `overcap_setup_python` does there.
  std::vector<std::string> module_paths;  // `module use`
  std::vector<std::string> modules;       // `module load`, in this order
  struct Python {
    std::string program;            // "python3"; a name or a path
    std::string conda;              // conda, mamba or micromamba: activate an environment of it; "": none
    std::string conda_root;         // where it is installed; "": the one on PATH or of the modules
    std::string conda_environment;  // "base"; a name or a folder
    std::string venv;               // name of the folder below venvs/; "": after the environment
    bool operator==(const Python&) const = default;
  } python;

  bool operator==(const SiteFacts&) const = default;
};

// Where site files may stand; the first place that has one that fits wins. "" leaves a place out.
struct SitePlaces {
  std::string named_file;   // $OVERCAP_SITE: must exist; taken whatever its `match` says
  std::string user_folder;  // ~/.config/overcap/sites
  std::string system_folder = "/etc/overcap/sites";
  bool built_in = true;
};
// From $OVERCAP_SITE, $XDG_CONFIG_HOME and $HOME.
SitePlaces DefaultSitePlaces(const Variables& variables);

// The facts of the machine `host_name` (with or without its domain); nullopt when no file fits. Of several
// files in one place that fit, the one whose match has the most conditions counts, then the first by name.
// kUsage "polaris.yaml:7: unknown key 'gpu'" for any file of a looked-at place that is broken, whether or not
// it would fit. Never throws.
Result<std::optional<SiteFacts>> FindSite(std::string_view host_name, const Variables& variables,
                                          const SitePlaces& places);

}  // namespace overcap
