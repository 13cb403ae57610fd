// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/daemon_words.h"

#include "base/text.h"

namespace overcap::cli {

Result<SystemWords> SystemWordsOf(const Args& args) {
  for (const std::string_view flag : {"--socket", "--print-unit"}) {
    if (args.Has(flag) && !args.Has("--system"))
      return Fail(ErrorCode::kUsage, StrCat("flag '", flag, "' needs --system"));
  }
  return CompleteSystemWords({std::string(args.Get("--root")), std::string(args.Get("--socket")),
                              std::string(args.Get("--policy"))});
}

}  // namespace overcap::cli
