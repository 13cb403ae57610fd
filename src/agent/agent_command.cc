// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_command.h"

#include "agent/agent.h"
#include "agent/elastic/node_step.h"
#include "agent/listen.h"
#include "agent/spare.h"
#include "agent/start_as.h"
#include "agent/trash.h"

namespace overcap {

Result<int> RunAgentCommand(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[1] == "listen") return RunListener();
  if (words.size() > 2 && words[1] == "node") return RunNodeStep({words.begin() + 2, words.end()});
  if (words.size() == 3 && words[1] == "empty") return EmptyFolder(words[2]);
  if (words.size() > 1 && words[1] == "spare") return RunSpare({words.begin() + 2, words.end()});
  if (words.size() > 1 && words[1] == "as") {
    OC_TRY(start, ParseStartAs({words.begin() + 2, words.end()}));
    return Fail(BecomeAgent(start));
  }
  OC_TRY(options, ParseAgentOptions({words.begin() + 1, words.end()}));
  return RunAgent(options);
}

}  // namespace overcap
