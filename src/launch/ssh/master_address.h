// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "sys/fd.h"

namespace overcap {

// Finds out in the background whether a host name has an address here: a name server may take its time.
class NameLookup {
 public:
  explicit NameLookup(const std::string& name);
  bool Resolves(int64_t wait_us);  // false also when that is not known in time

 private:
  Fd answer_;  // addresses, while they are not known
  bool resolves_ = false;
};

// Where the ranks of all hosts meet. `host` is the first one's name in the plan, `resolves` whether that has
// an address here, `told` the address by which the first host was reached ("": not known), `own_name` this
// host's.
std::string MasterAddress(int hosts, const std::string& host, bool resolves, const std::string& told,
                          const std::string& own_name);

}  // namespace overcap
