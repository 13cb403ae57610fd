// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_command.h"

#include "agent/agent.h"
#include "agent/beside.h"
#include "agent/courier/courier_server.h"
#include "agent/courier/node_code.h"
#include "agent/elastic/node_step.h"
#include "agent/listen.h"
#include "agent/spare.h"
#include "agent/start_as.h"
#include "agent/trash.h"

namespace overcap {
namespace {

Result<int> RunOwn(std::vector<std::string> words, const AgentSeams& seams) {
  // The folder of jobs on a node may be named by the node's own variables.
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "--node-folder") continue;
    OC_TRY(folder, seams.expand(words[i + 1]));
    words[i + 1] = std::move(folder);
  }
  OC_TRY(options, ParseAgentOptions(words));
  return RunAgent(options);
}

}  // namespace

Result<int> RunAgentCommand(const std::vector<std::string>& words, const AgentSeams& seams) {
  if (words.size() == 2 && words[1] == "listen") return RunListener();
  if (words.size() > 2 && words[1] == "beside") return RunBeside({words.begin() + 2, words.end()});
  if (words.size() > 2 && words[1] == "node") return RunNodeStep({words.begin() + 2, words.end()});
  if (words.size() == 3 && words[1] == "empty") return EmptyFolder(words[2]);
  if (words.size() == 4 && words[1] == "empty" && words[3] == "--itself") return RemoveFolder(words[2]);
  if (words.size() > 1 && words[1] == "spare") return RunSpare({words.begin() + 2, words.end()});
  if (words.size() > 1 && words[1] == "as") {
    OC_TRY(start, ParseStartAs({words.begin() + 2, words.end()}));
    if (!IsHelper(start)) return Fail(BecomeAgent(start));
    OC_TRY_VOID(BecomeHelper(start));
    std::vector<std::string> helper = {words[0]};
    helper.insert(helper.end(), start.words.begin(), start.words.end());
    return RunAgentCommand(helper, seams);
  }
  if (words.size() > 1 && words[1] == "courier") {
    OC_TRY(options, ParseCourierOptions({words.begin() + 2, words.end()}));
    return RunCourier(options, seams.open);
  }
  if (words.size() > 1 && words[1] == "fetch") {
    OC_TRY(fetch, ParseFetchWords({words.begin() + 2, words.end()}));
    return RunFetch(fetch, seams.open);
  }
  return RunOwn({words.begin() + 1, words.end()}, seams);
}

}  // namespace overcap
