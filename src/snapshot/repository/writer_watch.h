// SPDX-License-Identifier: Apache-2.0
// The writers that a prune may have to wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/repository/repository.h"

namespace overcap {

class WriterWatch {
 public:
  // All that are in writers/ now but `own_id`, whose object was put not long ago. Writers that come later are
  // not looked at.
  static Result<WriterWatch> List(const Repository& repository, std::string own_id, int64_t dead_after_us);

  // Looks again: those that are gone are forgotten, those that are dead removed.
  Result<void> Look();

  bool Has(const std::string& id) const;
  // Whether packs that the condemned/ object `id` names must still wait.
  bool MustWait(const std::string& condemned_id) const;
  // "node07, pid 4711, since 2026-11-15 14:45" of those for which they must.
  std::vector<std::string> Describe(const std::string& condemned_id) const;

 private:
  struct Watched {
    std::string id;
    std::string bytes;
    WriterRecord record;
    int64_t since_us = 0;  // monotonic: when these bytes were seen first
  };

  WriterWatch(const Repository& repository, std::string own_id, int64_t dead_after_us);
  // False: gone or dead.
  Result<bool> LookAt(Watched* writer) const;
  Result<bool> Dead(const Watched& writer) const;

  const Repository* repository_;
  std::string own_id_;
  int64_t dead_after_us_;
  std::vector<Watched> writers_;
};

}  // namespace overcap
