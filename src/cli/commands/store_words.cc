// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/store_words.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"

namespace overcap::cli {
namespace {

constexpr int64_t kMostShown = 20, kMostAlike = 3;

OpenStoreOptions ForPeople(bool create, KeyRule keys = KeyRule::kAny) {
  return {.create = create, .keys = keys, .private_files = false, .durable = false};
}

tl::unexpected<Error> Nothing(const StorePlace& place) {
  return Fail(ErrorCode::kNotFound, StrCat("there is nothing in ", Quoted(place.location.Text(), 300)),
              "'overcap store ls' shows what is there");
}

// By what so many of the copied were verified.
void WriteProofs(const TransferReport& report, JsonWriter* json) {
  json->Key("verified").BeginObject();
  for (size_t i = 1; i < kProofKinds; ++i) {
    if (report.proven[i] > 0) json->Field(ProofKindName(static_cast<ProofKind>(i)), report.proven[i]);
  }
  json->EndObject().Field("unverified", report.proven[static_cast<size_t>(ProofKind::kNone)]);
}

// Most messages name what they are of themselves.
std::string ProblemInWords(const TransferProblem& problem) {
  const std::string &message = problem.error.message, named = Quoted(problem.key),
                    shown = Quoted(problem.key, 400);
  if (message.starts_with(named)) return shown + message.substr(named.size());
  return StrCat(shown, ": ", message);
}

void WriteDone(Output& out, const TransferReport& report, const TransferEnd& end, int status) {
  JsonWriter json;
  json.BeginObject().Field("event", "done").Field("status", status).Field("dry_run", end.dry_run != nullptr);
  json.Field("copied", report.copied).Field("copied_bytes", report.copied_bytes).Field("same", report.same);
  json.Field("same_bytes", report.same_bytes).Field("removed", report.removed).Field("extra", report.extra);
  json.Field("failed", report.failed).Field("left_out", report.left_out).Field("stopped", report.stopped);
  json.Field("gave_up", report.gave_up).Field("seconds", static_cast<double>(end.took_us) / 1e6);
  WriteProofs(report, &json);
  out.Json(json.EndObject().Text());
}

std::string EndInWords(const TransferReport& report, const TransferEnd& end) {
  std::string text =
      end.removal ? StrCat("removed ", CountOf(report.removed, "file"))
                  : StrCat("copied ", CountOf(report.copied, "file"), ", ", FormatBytes(report.copied_bytes));
  if (report.same > 0) text += StrCat("; ", report.same, " the same");
  if (report.removed > 0 && !end.removal) text += StrCat("; removed ", report.removed);
  if (report.extra > 0) text += StrCat("; ", report.extra, " only there");
  if (report.failed > 0) text += StrCat("; ", report.failed, " failed");
  return StrCat(text, " in ", FormatElapsed(end.took_us));
}

std::string DryRunInWords(const TransferReport& report, const TransferEnd& end) {
  const StepSums& sums = *end.dry_run;
  std::string text =
      end.removal ? StrCat("would remove ", CountOf(sums.removals, "file"))
                  : StrCat("would copy ", CountOf(sums.copies, "file"), ", ", FormatBytes(sums.copied_bytes));
  if (report.same > 0) text += StrCat("; ", report.same, " the same");
  if (sums.removals > 0 && !end.removal) text += StrCat("; would remove ", sums.removals);
  return text + "; nothing was changed (--dry-run)";
}

}  // namespace

std::string ShownName(std::string_view name) {
  std::string shown;
  for (const char c : ToUtf8(name))
    c == '\n' || c == '\t' ? shown.append("\xEF\xBF\xBD") : shown.append(1, c);
  return shown;
}

bool IsInBucket(const StorePlace& place) {
  return place.location.kind == StoreKind::kS3 || place.location.kind == StoreKind::kAzure;
}

StoreBook StoreBookOf(World& world) {
  StoreBook book;
  book.entries = world.config().stores;
  book.variables = Variables::OfThisProcess();
  if (const auto folder = world.Folder()) book.folder = *folder;
  return book;
}

Result<OpenedStore> OpenFolderAt(World& world, const StorePlace& place, bool create) {
  OC_TRY(store, OpenStoreAt(StoreBookOf(world), place, ForPeople(create)));
  return OpenedStore{std::move(store), place, ""};
}

Result<OpenedStore> WithEveryName(World& world, OpenedStore opened) {
  if (!opened.key.empty() || !IsInBucket(opened.place)) return opened;
  OC_TRY(store, OpenStoreAt(StoreBookOf(world), opened.place, ForPeople(false, KeyRule::kService)));
  opened.store = std::move(store);
  return opened;
}

Result<OpenedStore> OpenObjectAt(World& world, const StorePlace& place, bool create) {
  const std::string name = place.location.Name();
  if (name.empty() || name == "~")
    return Fail(ErrorCode::kUsage, StrCat(Quoted(place.location.Text(), 300), " names no object"));
  OC_TRY(opened, OpenFolderAt(world, place.Above(), create));
  opened.key = name;
  return opened;
}

Result<OpenedStore> OpenSource(World& world, const std::string& text) {
  OC_TRY(place, FindStorePlace(StoreBookOf(world), text));
  const std::string name = place.location.Name();
  if (!place.location.open_end && !name.empty() && name != "~" && name != "." && name != "..") {
    auto object = OpenObjectAt(world, place, false);
    if (!object && object.error().code != ErrorCode::kNotFound) return object;
    if (object) {
      const auto info = object->store->Stat(name);
      if (info) return object;
      if (info.error().code != ErrorCode::kNotFound) return Fail(info.error());
    }
  }
  auto folder = OpenFolderAt(world, place, false);
  // Of a bucket it is a file of keys or a profile that is not there.
  const bool here = !IsInBucket(place);
  if (here && !folder && folder.error().code == ErrorCode::kNotFound && !place.location.open_end)
    return Fail(ErrorCode::kNotFound,
                StrCat("there is neither a file nor a folder ", Quoted(place.location.Text(), 300)));
  if (!folder || !IsInBucket(place)) return folder;
  // A prefix under which nothing stands is not there; a bucket that is empty is.
  OC_TRY(page, folder->store->List("", ""));
  if (page.objects.empty() && page.left_out == 0 && !place.location.prefix.empty()) return Nothing(place);
  return folder;
}

Result<TransferOptions> TransferOptionsFrom(const Args& args, std::string_view what, std::string_view words,
                                            ProgressMeter* meter, const StopSignals& signals) {
  TransferOptions options;
  OC_TRY(jobs, args.GetInt("--jobs", 32, 1, 256));
  options.workers = static_cast<int>(jobs);
  options.stop = signals.flag();
  options.progress = [meter, what, words](const TransferProgress& progress) {
    meter->Show(
        {what, words, progress.files_done, progress.files_total, progress.bytes_done, progress.bytes_total});
  };
  return options;
}

void TellSteps(World& world, TransferOptions* options, StepSums* sums) {
  options->step = [&world, sums, mutex = std::make_shared<std::mutex>()](const TransferStep& step) {
    const std::lock_guard lock(*mutex);
    const bool copy = step.kind == TransferStep::Kind::kCopy;
    ++(copy ? sums->copies : sums->removals);
    if (copy) sums->copied_bytes += step.size;
    if (world.out().json()) {
      JsonWriter json;
      json.BeginObject()
          .Field("event", "step")
          .Field("action", copy ? "copy" : "remove")
          .Field("key", step.key);
      json.Field("bytes", step.size);
      if (copy) json.Field("why", CopyVerdictText(step.why));
      return world.out().Json(json.EndObject().Text());
    }
    world.out().Line(StrCat(copy ? "copy    " : "remove  ", ShownName(step.key), "  (",
                            copy ? StrCat(CopyVerdictText(step.why), ", ") : "", FormatBytes(step.size),
                            ")"));
  };
}

void TellProblems(World& world, const std::vector<TransferProblem>& problems, int64_t count) {
  Output& out = world.out();
  int64_t shown = 0, unavailable = 0;
  for (const TransferProblem& problem : problems) {
    if (out.json()) {
      JsonWriter json;
      json.BeginObject().Field("event", "problem").Field("key", problem.key);
      json.Field("code", ErrorCodeName(problem.error.code)).Field("reason", problem.error.message);
      out.Json(json.EndObject().Text());
      ++shown;
      continue;
    }
    // A full disk and a net that is away are the same for all.
    const bool again = problem.error.code == ErrorCode::kUnavailable && ++unavailable > kMostAlike;
    if (again || shown == kMostShown) continue;
    out.Warn(ProblemInWords(problem));
    ++shown;
  }
  const auto hinted = std::find_if(problems.begin(), problems.end(), [](const TransferProblem& problem) {
    return !problem.error.hint.empty();
  });
  if (hinted != problems.end() && !out.json()) out.Note(StrCat("hint: ", hinted->error.hint));
  const int64_t rest = count - shown;
  if (rest > 0 && !out.json()) out.Warn(StrCat("and ", rest, " more"));
}

void TellLeftOut(World& world, int64_t left_out, bool in_bucket) {
  if (left_out == 0 || world.out().json()) return;
  world.out().Warn(StrCat("left out: ", CountOf(left_out, "object"),
                          in_bucket ? " (names that no file can have; 'overcap store ls -R' shows them)"
                                    : " (links to folders or to nothing, devices, pipes, sockets)"));
}

std::function<void(int status)> StoppedLate(World& world) {
  return [&world](int status) {
    JsonWriter json;
    json.BeginObject().Field("event", "done").Field("status", status).Field("stopped", true).EndObject();
    if (world.out().json())
      world.out().Json(json.Text());
    else
      world.out().Warn(
          "stopped while the store did not answer; the same command goes on where this one ended");
    (void)world.out().Flush();
  };
}

int StatusOfProblems(const std::vector<TransferProblem>& problems) {
  return problems.empty() ? 0 : ExitStatus(problems.front().error.code);
}

int TellTransfer(World& world, const TransferReport& report, const StopSignals& signals,
                 const TransferEnd& end) {
  Output& out = world.out();
  out.ClearProgress();
  TellProblems(world, report.problems, report.failed);
  TellLeftOut(world, report.left_out, end.in_bucket);
  const int status =
      report.stopped && signals.signal() != 0 ? 128 + signals.signal() : StatusOfProblems(report.problems);
  if (out.json()) {
    WriteDone(out, report, end, status);
    return status;
  }
  if (report.gave_up) out.Warn("gave up: nothing worked any more");
  if (report.unproven > 0)
    out.Warn(StrCat("of ", CountOf(report.unproven, "file"),
                    " the service tells no checksum that could be compared: only sizes and versions were"));
  if (report.stopped) out.Warn("stopped; the same command goes on where this one ended");
  out.Note(end.dry_run != nullptr ? DryRunInWords(report, end) : EndInWords(report, end));
  return status;
}

}  // namespace overcap::cli
