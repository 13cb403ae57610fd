// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/mirror.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/crc32c.h"
#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMaxFile = 256 << 20;
constexpr int64_t kFirstPauseUs = 1'000, kLongestPauseUs = 32'000;
constexpr int64_t kLockSlackUs = 2'000'000;
constexpr int64_t kAnyTimeUs = 1'000'000'000'000'000;  // stands for "now" where the time must not matter

std::string_view KindName(MirrorKind kind) {
  switch (kind) {
    case MirrorKind::kQueue:
      return "queue";
    case MirrorKind::kNodes:
      return "nodes";
    case MirrorKind::kPartitions:
      return "partitions";
    case MirrorKind::kAssociations:
      return "associations";
    case MirrorKind::kQos:
      return "qos";
    case MirrorKind::kUsers:
      return "users";
    case MirrorKind::kConfig:
      return "config";
    case MirrorKind::kHistory:
      return "history";
  }
  return "";
}

std::string Hex(const char* format, unsigned long long value) {
  char text[24];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// All that makes one answer another than the next, but for the mark and the time.
std::string Of(const std::string& cluster, MirrorKind kind, const MirrorSource& source) {
  return ToUtf8(StrCat(cluster, " ", KindName(kind), " ", ShellJoin(source.argv("mmmmmmmm", kAnyTimeUs))));
}

Error OwnWords(const std::vector<std::string>& argv, const ToolAnswer& answer) {
  const std::string_view said = Trim(answer.err);
  const std::string first = ToUtf8(said.substr(0, std::min(said.find('\n'), size_t{200})));
  return Error{ErrorCode::kUnavailable,
               StrCat("'", argv[0], "' failed with exit status ", answer.end.exit_status,
                      first.empty() ? "" : ": ", first),
               ""};
}

}  // namespace

std::vector<std::string> OwnMirrorFolders(uid_t user, const std::string& root) {
  return {StrCat("/dev/shm/overcap-", user, "-mirror"), StrCat(root, "/mirror")};
}

Mirror::Mirror(MirrorSeams seams, MirrorOptions options, std::map<MirrorKind, MirrorSource> sources)
    : seams_(std::move(seams)), options_(std::move(options)), sources_(std::move(sources)) {
  for (const auto& [kind, source] : sources_) {
    Known& known = known_[kind];
    known.of = Of(options_.cluster, kind, source);
    known.name = StrCat(KindName(kind), "-", Hex("%08llx", Crc32c(known.of)));
  }
}

Result<MirrorText> Mirror::Read(MirrorKind kind, int64_t max_age_us) {
  const auto source = sources_.find(kind);
  if (source == sources_.end()) {
    return Fail(ErrorCode::kInternal, StrCat("nothing mirrors '", KindName(kind), "'"));
  }
  Known& known = known_[kind];
  troubles_.clear();
  const std::vector<MirrorFolder> folders = OpenFolders();
  Look(folders, &known);
  if (Serves(known, max_age_us)) return Give(known);
  const auto home =
      std::find_if(folders.begin(), folders.end(), [](const MirrorFolder& f) { return f.writable(); });
  const MirrorFolder* home_folder = home == folders.end() ? nullptr : &*home;
  std::optional<MirrorLock> lock;
  switch (WaitForTurn(folders, home_folder, max_age_us, &known, &lock)) {
    case Turn::kAsk:
      Ask(source->second, folders, &known);
      return Give(known);
    case Turn::kServed:
      return Give(known);
    case Turn::kGivenUp:
      break;
  }
  return Give(known, Error{ErrorCode::kUnavailable,
                           StrCat("another process reads '", KindName(kind), "' of the cluster and hangs"),
                           "try again in a moment"});
}

std::optional<MirrorText> Mirror::Peek(MirrorKind kind) {
  const auto known = known_.find(kind);
  if (known == known_.end()) return std::nullopt;
  Look(OpenFolders(), &known->second);
  auto text = Give(known->second);
  if (!text) return std::nullopt;
  return *std::move(text);
}

// Every time anew: a folder may be removed while somebody watches.
std::vector<MirrorFolder> Mirror::OpenFolders() {
  std::vector<MirrorFolder> folders;
  if (!options_.shared_folder.empty()) {
    auto shared = MirrorFolder::OpenShared(options_.shared_folder, options_.trusted);
    if (shared) {
      folders.push_back(std::move(*shared));
    } else {
      troubles_.push_back(shared.error());
    }
  }
  for (const std::string& path : options_.own_folders) {
    auto own = MirrorFolder::OpenOwn(path);
    if (own) {
      folders.push_back(std::move(*own));
      break;
    }
    troubles_.push_back(own.error());
  }
  return folders;
}

void Mirror::Look(const std::vector<MirrorFolder>& folders, Known* known) const {
  for (const MirrorFolder& folder : folders) {
    LookAtText(folder, known);
    const auto file = folder.Head(known->name + ".failed", kMirrorHeaderMax);
    auto failure = file ? ParseMirrorFailure(*file, known->of) : std::nullopt;
    if (!failure) continue;
    const int64_t now_us = seams_.clock->WallUs();
    if (known->failure && !MirrorLater(now_us, failure->tried_us, known->failure->tried_us)) continue;
    known->failure = std::move(failure);
  }
}

// The body is read only when it is better than what this process has.
void Mirror::LookAtText(const MirrorFolder& folder, Known* known) const {
  const std::string name = known->name + ".text";
  const auto head = folder.Head(name, kMirrorHeaderMax);
  auto header = head ? ParseMirrorHeader(*head, known->of) : std::nullopt;
  if (!header || header->mark == known->damaged_mark) return;
  const int64_t now_us = seams_.clock->WallUs();
  if (known->header && !MirrorLater(now_us, header->taken_us, known->header->taken_us)) return;
  auto file = folder.Load(name, kMaxFile);  // may be a later one by now
  if (!file) return;
  header = ParseMirrorHeader(*file, known->of);
  const auto body = header ? MirrorBody(*file, *header) : std::nullopt;
  if (!body) {
    if (header) known->damaged_mark = header->mark;
    return;
  }
  file->erase(0, static_cast<size_t>(body->data() - file->data()));
  known->header = std::move(header);
  known->text = std::make_shared<const std::string>(std::move(*file));
}

bool Mirror::Serves(const Known& known, int64_t max_age_us) const {
  const MirrorHeader* header = known.header ? &*known.header : nullptr;
  const MirrorFailure* failure = known.failure ? &*known.failure : nullptr;
  if (MirrorServes(seams_.clock->WallUs(), header, failure, {options_.min_interval_us, max_age_us}))
    return true;
  // Whatever the wall clock says.
  return known.asked_us && seams_.clock->MonotonicUs() - *known.asked_us < options_.min_interval_us;
}

Result<MirrorText> Mirror::Give(const Known& known, std::optional<Error> trouble) const {
  const MirrorHeader* header = known.header ? &*known.header : nullptr;
  const MirrorFailure* failure = known.failure ? &*known.failure : nullptr;
  const int64_t now_us = seams_.clock->WallUs();
  if (!trouble && MirrorFailureCounts(now_us, header, failure)) trouble = failure->error;
  if (header == nullptr) {
    return Fail(trouble.value_or(Error{ErrorCode::kUnavailable, "nothing is known of the cluster yet", ""}));
  }
  return MirrorText{known.text, header->mark, header->taken_us, MirrorAge(now_us, header->taken_us),
                    std::move(trouble)};
}

Mirror::Turn Mirror::WaitForTurn(const std::vector<MirrorFolder>& folders, const MirrorFolder* home,
                                 int64_t max_age_us, Known* known, std::optional<MirrorLock>* lock) {
  if (home == nullptr) return Turn::kAsk;
  const std::string name = known->name + ".lock";
  const int64_t patience_us = options_.call_timeout_us + kLockSlackUs;
  const int64_t began_us = seams_.clock->MonotonicUs();
  int64_t since_us = began_us, pause_us = kFirstPauseUs;
  ino_t held = 0;
  while (seams_.clock->MonotonicUs() - began_us < 2 * patience_us) {
    auto locked = home->TryLock(name);
    if (!locked) {
      // No lock is to be had here (a file system without any): better ask than know nothing.
      troubles_.push_back(locked.error());
      return Turn::kAsk;
    }
    Look(folders, known);
    if (Serves(*known, max_age_us)) return Turn::kServed;
    if (*locked) {
      *lock = std::move(*locked);
      return Turn::kAsk;
    }
    if (const ino_t file = home->LockFile(name); file != held) {
      held = file, since_us = seams_.clock->MonotonicUs();
    }
    if (seams_.clock->MonotonicUs() - since_us >= patience_us) home->BreakLock(name, held);
    seams_.pause(pause_us);
    pause_us = std::min(2 * pause_us, kLongestPauseUs);
  }
  return Turn::kGivenUp;
}

void Mirror::Ask(const MirrorSource& source, const std::vector<MirrorFolder>& folders, Known* known) {
  const std::string mark = "m" + Hex("%016llx", seams_.random->Next());
  const int64_t began_us = seams_.clock->WallUs(), began = seams_.clock->MonotonicUs();
  auto text = Call(source, mark, began_us);
  const int64_t took_us = std::max<int64_t>(0, seams_.clock->MonotonicUs() - began);
  known->asked_us = began;
  if (!text) {
    known->failure = MirrorFailure{known->of, began_us, took_us, std::move(text.error())};
    KeepFailure(folders, *known);
    return;
  }
  known->header = MirrorHeader{known->of, mark, began_us, took_us, 0, 0};
  known->text = std::make_shared<const std::string>(std::move(*text));
  known->failure.reset();
  Keep(folders, *known);
}

Result<std::string> Mirror::Call(const MirrorSource& source, const std::string& mark, int64_t now_us) const {
  const std::vector<std::string> argv = source.argv(mark, now_us);
  OC_TRY(answer, seams_.run(argv, std::chrono::milliseconds(options_.call_timeout_us / 1000)));
  if (!answer.end.ok()) {
    return Fail(seams_.explain ? seams_.explain(argv, answer) : OwnWords(argv, answer));
  }
  if (source.check) OC_TRY_VOID(source.check(answer.out, mark));
  return std::move(answer.out);
}

// In the first folder that takes it; with a full shared one this user's own processes at least share it.
void Mirror::Keep(const std::vector<MirrorFolder>& folders, const Known& known) {
  const std::string name = known.name + ".text";
  const int64_t now_us = seams_.clock->WallUs();
  const std::string line = MirrorHeaderLine(*known.header, *known.text);
  for (const MirrorFolder& folder : folders) {
    if (!folder.writable()) continue;
    folder.Sweep(now_us / 1'000'000);
    // The lock may have been taken away, and somebody else has a later answer.
    const auto head = folder.Head(name, kMirrorHeaderMax);
    const auto there = head ? ParseMirrorHeader(*head, known.of) : std::nullopt;
    if (there && MirrorLater(now_us, there->taken_us, known.header->taken_us)) return;
    auto kept = folder.Replace(name, line, *known.text, seams_.random);
    if (kept) return;
    troubles_.push_back(std::move(kept.error()));
  }
}

// That this user cannot start the program is no concern of others.
void Mirror::KeepFailure(const std::vector<MirrorFolder>& folders, const Known& known) {
  const bool for_all = known.failure->error.code == ErrorCode::kUnavailable;
  for (const MirrorFolder& folder : folders) {
    if (!folder.writable() || (folder.shared() && !for_all)) continue;
    auto kept = folder.Replace(known.name + ".failed", MirrorFailureLine(*known.failure), "", seams_.random);
    if (kept) return;
    troubles_.push_back(std::move(kept.error()));
  }
}

}  // namespace overcap
