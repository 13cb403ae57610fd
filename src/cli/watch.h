// SPDX-License-Identifier: Apache-2.0
// --watch: the same table again and again until somebody stops it.
#pragma once

#include <functional>
#include <string>

#include "cli/world.h"

namespace overcap::cli {

// What is to be seen now, as whole lines. Width 0: not shortened.
using WatchFrame = std::function<Result<std::string>(int width, bool color)>;

// On a terminal redrawn in place, cut to its size and again when that changes; elsewhere (and with --json)
// one frame after the other. Ends by Ctrl-C, which leaves the terminal as it was (status 130), or when stdout
// takes no more. An error of the first frame is returned; later ones are shown and tried again.
Result<int> Watch(World& world, const WatchFrame& frame);

// The pure part: what the terminal is sent to show `text` and nothing else, without flicker. Lines that do
// not fit into `rows` are counted in the last one, longer ones are cut.
std::string DrawInPlace(const std::string& text, int rows, int columns);

}  // namespace overcap::cli
