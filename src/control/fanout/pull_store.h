// SPDX-License-Identifier: Apache-2.0
// A node's part in bringing what is in a store: docs/formats/fanout.md, "The first nodes pull it".
#pragma once

#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "control/fanout/node_uplink.h"

namespace overcap {

// Makes the target what the store is and tells the head what that is; or that the store cannot be read from
// here. An error means that something is wrong with this node.
Result<void> PullStore(const fanout::Pull& pull, const std::vector<fanout::ListedObject>& listing,
                       NodeUplink* uplink);

}  // namespace overcap
