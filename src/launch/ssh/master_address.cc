// SPDX-License-Identifier: Apache-2.0
#include "launch/ssh/master_address.h"

#include <poll.h>
#include <unistd.h>

#include "net/resolve.h"

namespace overcap {

NameLookup::NameLookup(const std::string& name) {
  if (auto pipe = ResolveBeside(name)) answer_ = std::move(*pipe);
}

bool NameLookup::Resolves(int64_t wait_us) {
  pollfd entry{answer_.Get(), POLLIN, 0};
  char first = 0;
  if (!resolves_ && answer_ && poll(&entry, 1, static_cast<int>(wait_us / 1000)) > 0) {
    resolves_ = read(answer_.Get(), &first, 1) == 1;
  }
  return resolves_;
}

std::string MasterAddress(int hosts, const std::string& host, bool resolves, const std::string& told,
                          const std::string& own_name) {
  if (hosts == 1) return "127.0.0.1";
  if (host == "localhost" || host.starts_with("127.") || host == "::1") return own_name;
  return resolves || told.empty() ? host : told;
}

}  // namespace overcap
