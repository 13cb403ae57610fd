// SPDX-License-Identifier: Apache-2.0
// `overcap enter`: what a cluster's own launcher starts on a node for a person. It takes the environment and
// the folder of a job and becomes the person's command or shell. Hidden: programs type it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster_sessions.h"

namespace overcap {

struct EnterOptions {
  std::string job;  // its folder; "": nothing is taken from a job
  int attempt = 0;
  // Variables that the node itself sets for this process and that count more than the job's: names, and
  // beginnings of names, which end with '_'. Of those with such a beginning none of the job's is left.
  std::vector<std::string> here;
  std::string environment;           // a file with all variables, in the place of the job's
  std::string folder;                // with `environment`: where to start
  bool login = false;                // the shell reads the files of a login
  bool ssh = false;                  // what to run is told by sshd
  std::string keys;                  // `enter-sshd`: the folder of ssh's keys
  std::vector<std::string> command;  // empty: the user's shell
};

// The words behind the verb. kUsage.
Result<EnterOptions> ParseEnterOptions(const std::vector<std::string>& words);

// Pure.
std::vector<std::string> EnterVariables(const std::vector<std::string>& of_job,
                                        const std::vector<std::string>& of_here,
                                        const std::vector<std::string>& here);
// Whether a line that sshd was asked to run only carries files: scp, sftp, rsync.
bool CarriesFiles(std::string_view line);
// What sshd told about the connection, over the variables of the job.
std::vector<std::string> SshVariables(const std::vector<std::string>& of_job,
                                      const std::vector<std::string>& of_sshd);

// Where and with which variables the command shall run; program and argv are left empty. `own`: of this
// process.
Result<Replacement> PlanPlace(const EnterOptions& options, const std::vector<std::string>& own);

Result<int> RunEnter(const std::vector<std::string>& words);

}  // namespace overcap
