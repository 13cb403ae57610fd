// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace overcap {

// Opens what the caller has closed of stdin, stdout and stderr on /dev/null. Else the first file that is
// opened would take its place, and be written to.
void OpenClosedStreams();

}  // namespace overcap
