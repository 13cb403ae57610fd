// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"
#include "control/locked_run.h"
#include "sys/process.h"

namespace overcap::cli {
namespace {

constexpr int kLostStatus = 75;
constexpr std::string_view kTurnVariable = "OVERCAP_LOCK_TURN=";
constexpr int64_t kWaitSeconds = 600, kLeaseSeconds = 30;

constexpr Flag kFlags[] = {
    {"--wait", "", "TIME", "how long to wait for it: 30s, 10m, 2h; by default 10m"},
    {"--no-wait", "", "", "do not wait: status 6 when somebody has it"},
    {"--lease", "", "TIME", "how soon others may have it after this node died: 15s to 60s; by default 30s"},
    {"--status", "", "", "only say who holds it: status 0 when nobody does, 6 when somebody does"},
};

Result<int64_t> SecondsOf(const Args& args, std::string_view flag, int64_t absent) {
  return args.Has(flag) ? OfFlag(flag, ParseDurationSeconds(args.Get(flag))) : absent;
}

// "s3://lab/locks/train" is the lock 'train' in 's3://lab/locks'.
struct NamedLock {
  StorePlace store;
  std::string name, text;
};

Result<NamedLock> FindLock(World& world, const std::string& text) {
  OC_TRY(place, FindStorePlace(StoreBookOf(world), text));
  const std::string name = place.location.Name();
  if (name.empty() || name == "~" || name == "." || name == ".." || place.location.open_end)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(text, 300), " names no lock"),
                StrCat("give it a name in that place: overcap store lock ",
                       ShellQuote(text + (text.ends_with('/') ? "NAME" : "/NAME"))));
  return NamedLock{place.Above(), name, place.location.Text()};
}

Result<std::shared_ptr<Store>> OpenFor(World& world, const NamedLock& lock, bool create, int64_t lease_us) {
  OpenStoreOptions options;
  options.create = create;
  options.keys = KeyRule::kAny;
  options.private_files = false;
  options.patience_us = LockPatienceUs(lease_us);
  OC_TRY(store, OpenStoreAt(StoreBookOf(world), lock.store, options));
  return std::shared_ptr<Store>(std::move(store));
}

Result<int> TellHolder(World& world, const NamedLock& lock) {
  std::optional<LockRecord> holder;
  const auto store = OpenFor(world, lock, false, kLeaseSeconds * 1'000'000);
  // A folder that nobody has made has no locks.
  if (!store && store.error().code != ErrorCode::kNotFound) return Fail(store.error());
  if (store) {
    OC_TRY(place, (*store)->LockAt(lock.name));
    OC_TRY(found, place->Look());
    holder = std::move(found);
  }
  Output& out = world.out();
  if (out.json()) {
    JsonWriter json;
    json.BeginObject().Field("lock", lock.text).Field("held", holder.has_value());
    if (holder && !holder->user.empty())
      json.Field("user", holder->user)
          .Field("host", holder->host)
          .Field("pid", holder->pid)
          .Field("since", FormatTimeUtc(holder->since_us))
          .Field("turn", holder->turn);
    out.Json(json.EndObject().Text());
  } else {
    out.Line(holder ? StrCat("held by ", DescribeHolder(*holder)) : "free");
  }
  return holder ? ExitStatus(ErrorCode::kConflict) : 0;
}

// What a person sees while it cannot be had, and whether a signal asks to give up.
class Waiting {
 public:
  Waiting(World& world, const NamedLock& lock, SignalInbox& inbox)
      : world_(world), lock_(lock), inbox_(inbox) {}

  bool operator()(const std::string& why) {
    for (const int sig : inbox_.Take()) {
      if (sig == SIGTSTP)
        (void)raise(SIGSTOP);  // nothing is held yet
      else if (sig != SIGCONT && sig != SIGUSR1 && sig != SIGUSR2)
        signal_ = sig;
    }
    Output& out = world_.out();
    if (out.terminal().err_is_terminal) {
      const int64_t waited = (world_.clock().MonotonicUs() - began_us_) / 1'000'000;
      out.Progress(StrCat("waiting ", FormatDuration(waited), ": ", why));
    } else if (why != told_) {
      out.Note(StrCat("waiting for ", lock_.text, ": ", why));
    }
    told_ = why;
    return signal_ == 0;
  }
  int signal() const { return signal_; }

 private:
  World& world_;
  const NamedLock& lock_;
  SignalInbox& inbox_;
  const int64_t began_us_ = world_.clock().MonotonicUs();
  std::string told_;
  int signal_ = 0;
};

Result<LockedCommand> CommandOf(World& world, const Args& args) {
  const Variables variables = Variables::OfThisProcess();
  LockedCommand command;
  command.argv.assign(args.words().begin() + 1, args.words().end());
  command.env = variables.entries();
  OC_TRY(folder, world.Folder());
  OC_TRY(program, ResolveProgram(command.argv[0], PathOf(command.env), folder));
  command.program = std::move(program);
  return command;
}

Result<int> RunCommand(World& world, const Args& args, const NamedLock& named, const LockOptions& asked) {
  auto command = CommandOf(world, args);
  if (!command) {
    world.out().PrintError(command.error());
    return command.error().code == ErrorCode::kDenied ? 126 : 127;
  }
  // Both before the store is opened, which may make threads.
  OC_TRY(guard, RightGuard::Make(LockPlace::OwnClock()));
  OC_TRY(inbox, SignalInbox::Make(LockedRunSignals()));
  OC_TRY(store, OpenFor(world, named, true, asked.lease_us));
  Waiting waiting(world, named, inbox);
  LockOptions options = asked;
  options.waiting = std::ref(waiting);
  auto lock = StoreLock::Acquire(store, named.name, options);
  world.out().ClearProgress();
  if (waiting.signal() != 0) return 128 + waiting.signal();
  if (!lock) return Fail(lock.error());
  std::erase_if(command->env, [](const std::string& entry) { return entry.starts_with(kTurnVariable); });
  command->env.push_back(StrCat(kTurnVariable, (*lock)->turn()));
  const auto lost = [&] {
    world.out().Warn(
        StrCat("the lock ", named.text, " is lost: ", (*lock)->WhyLost(), "; the command is ended"));
  };
  OC_TRY(run, RunLocked(*command, **lock, *guard, inbox, lost));
  if (run.lost) return kLostStatus;
  if (const auto released = (*lock)->Release(); !released)
    world.out().Warn(StrCat("others must wait for ", asked.lease_us / 1'000'000,
                            " s: the lock could not be let go of: ", released.error().message));
  return run.exit_status;
}

Result<int> Run(World& world, const Args& args) {
  OC_TRY(named, FindLock(world, args.words()[0]));
  if (args.Has("--status")) {
    const bool more =
        args.words().size() > 1 || args.Has("--wait") || args.Has("--no-wait") || args.Has("--lease");
    if (!more) return TellHolder(world, named);
    return Fail(ErrorCode::kUsage, "--status only looks: it takes no command and no other flag",
                StrCat("overcap store lock ", ShellQuote(args.words()[0]), " --status"));
  }
  if (args.words().size() == 1)
    return Fail(ErrorCode::kUsage, "there is no command to run",
                StrCat("overcap store lock ", ShellQuote(args.words()[0]), " -- COMMAND..."));
  if (args.Has("--wait") && args.Has("--no-wait"))
    return Fail(ErrorCode::kUsage, "--wait and --no-wait contradict each other");
  LockOptions options;
  OC_TRY(wait, SecondsOf(args, "--wait", kWaitSeconds));
  OC_TRY(lease, SecondsOf(args, "--lease", kLeaseSeconds));
  options.wait_us = args.Has("--no-wait") ? 0 : wait * 1'000'000;
  options.lease_us = lease * 1'000'000;
  if (options.lease_us < kShortestLeaseUs || options.lease_us > kLongestLeaseUs)
    return Fail(ErrorCode::kUsage, StrCat("--lease: ", lease, " seconds are not 15 to 60"));
  return RunCommand(world, args, named, options);
}

}  // namespace

constinit const Command kStoreLock = {
    .name = "store lock",
    .summary = "run a command that only one node may run at a time",
    .usage = "LOCATION [--wait TIME | --no-wait] [--lease TIME] -- COMMAND... | LOCATION --status",
    .flags = kFlags,
    .min_words = 1,
    .run = Run,
    .group = CommandGroup::kCode,
    .other_flags = "those of the command go behind '--'",
};

}  // namespace overcap::cli
