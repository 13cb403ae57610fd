// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "launch/site/site_schema.h"

namespace overcap {

// Reads the text of one site file. kUsage "FILE:LINE: ..." for whatever is wrong with it. `facts.name` is ""
// when the file does not say it.
Result<SiteFile> ParseSiteFile(std::string_view text, const std::string& file);

// How well a machine fits.
struct SiteFit {
  int conditions = 0;  // more are more particular
  std::string reason;  // "host name 'x3005c0s1b0n0' fits 'x3*'"
};
// The best of the file's matches; nullopt when none fits.
std::optional<SiteFit> FitOf(const std::vector<SiteMatch>& matches, std::string_view host_name,
                             const Variables& variables);

}  // namespace overcap
