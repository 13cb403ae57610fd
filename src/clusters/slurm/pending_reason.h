// SPDX-License-Identifier: Apache-2.0
// Why a job waits (or ended), from Slurm's word for it, for people.
#pragma once

#include <string>
#include <string_view>

namespace overcap {

enum class ReasonKind {
  kNone,        // Slurm gives none
  kTurn,        // others are ahead, or nothing is free: it starts when its turn comes
  kTime,        // at a later time
  kDependency,  // after other jobs
  kHeld,        // until somebody releases it
  kLimit,       // a cap of its account, QOS, user or array is used up: when jobs under it end
  kNodes,       // the nodes it asks for are away: when they come back
  kNever,       // as it is it will never start: change or cancel it
  kEnded,       // it did start, and this is how it ended
  kUnknown,     // a word of a Slurm that we do not know
};

struct PendingReason {
  ReasonKind kind = ReasonKind::kUnknown;
  std::string word;  // Slurm's own, without what follows it
  std::string text;  // "the account has all the GPUs in use that it may have"; the word itself when unknown
};

// "AssocGrpGRES", "ReqNodeNotAvail, UnavailableNodes:n[1-2]", also with the brackets of squeue's %R.
PendingReason ReadPendingReason(std::string_view raw);

}  // namespace overcap
