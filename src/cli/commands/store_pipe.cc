// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/store_pipe.h"

#include <unistd.h>

#include "base/text.h"
#include "control/transfer/pipe_stores.h"

namespace overcap::cli {
namespace {

Result<int> FromStdin(World& world, const Args& args, const StoreCopy& copy) {
  if (isatty(STDIN_FILENO) == 1)
    return Fail(ErrorCode::kUsage, "'-' is stdin, and that is a terminal",
                "COMMAND | overcap store cp - DST");
  OC_TRY(to, FindStorePlace(StoreBookOf(world), copy.to));
  if (TakesObjects(world, to))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(copy.to, 300), " is a folder, and stdin has no name"),
                StrCat("overcap store cp - ", ShellQuote(StrCat(to.location.Text(), "/NAME"))));
  // Before it is read: who made it may have worked for hours.
  OC_TRY(target, OpenObjectAt(world, to, true));
  ProgressMeter meter(world.out(), world.clock());
  const StoreBook book = StoreBookOf(world);
  const std::string_view folder = book.variables.Get("TMPDIR");
  OC_TRY(input,
         InputStore::ReadAll(STDIN_FILENO, std::string(folder.empty() ? "/tmp" : folder), [&](int64_t bytes) {
           meter.Show({"read", "reading", 0, 0, bytes, 0});
         }));
  const StopSignals signals;
  const StopGrace grace(signals, StoppedLate(world));
  OC_TRY(options, TransferOptionsFrom(args, "copy", "copying", &meter, signals));
  options.flush = args.Has("--fsync");
  options.all = true;
  OC_TRY(report, TransferOne(*input, std::string(PipeStore::kKey), *target.store, target.key, options));
  return TellTransfer(world, report, signals, {.took_us = meter.ElapsedUs()});
}

Result<int> ToStdout(World& world, const Args& args, const StoreCopy& copy) {
  OC_TRY(from, OpenSource(world, copy.from));
  if (from.key.empty())
    return Fail(ErrorCode::kUsage, StrCat(Quoted(copy.from, 300), " is a folder; one object goes to stdout"),
                StrCat("overcap store ls ", ShellQuote(copy.from)));
  TransferOptions options;
  OC_TRY(jobs, args.GetInt("--jobs", 32, 1, 256));
  options.workers = static_cast<int>(jobs);
  OutputStore output(STDOUT_FILENO);
  OC_TRY(report, TransferOne(*from.store, from.key, output, std::string(PipeStore::kKey), options));
  TellProblems(world, report.problems, report.failed);
  return StatusOfProblems(report.problems);
}

}  // namespace

Result<int> CopyThroughPipe(World& world, const Args& args, const StoreCopy& copy) {
  if (copy.from == copy.to)
    return Fail(ErrorCode::kUsage, "one of SRC and DST may be '-', not both", "overcap store cp --help");
  for (const std::string_view flag : {"--dry-run", "--checksum", "--force"}) {
    if (args.Has(flag))
      return Fail(ErrorCode::kUsage, StrCat(flag, " cannot be used with '-'"),
                  "what goes through a pipe is always copied");
  }
  if (copy.from == kPipe) return FromStdin(world, args, copy);
  if (world.out().json() || args.Has("--fsync"))
    return Fail(ErrorCode::kUsage, StrCat(world.out().json() ? "--json" : "--fsync",
                                          " cannot be used when the object goes to stdout"));
  return ToStdout(world, args, copy);
}

}  // namespace overcap::cli
