// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/courier_server.h"

#include <cerrno>
#include <csignal>
#include <memory>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/courier/courier_message.h"
#include "agent/courier/leftovers.h"
#include "agent/courier/node_files.h"
#include "agent/courier/upload_queue.h"
#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "snapshot/materialise.h"
#include "snapshot/store.h"
#include "stores/job_files.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kOrphanUs = 600 * kSecond;
constexpr int64_t kBeatUs = 30 * kSecond;
constexpr int64_t kCancelUs = 5 * kSecond;

// Of a slot: attempt-N/agent-S.jsonl.
bool IsReport(std::string_view name) {
  constexpr std::string_view kStart = "agent-", kEnd = ".jsonl";
  name.remove_prefix(name.rfind('/') + 1);
  if (!name.starts_with(kStart) || !name.ends_with(kEnd)) return false;
  return ParseInt(name.substr(kStart.size(), name.size() - kStart.size() - kEnd.size())).has_value();
}

class CourierServer {
 public:
  CourierServer(const CourierOptions& options, const JobStoreOpener& open)
      : options_(options),
        open_(open),
        id_(options.JobId()),
        job_(StoredJobKey(id_, "")),
        queue_(QueueOptions()) {
    TakeLeftovers();
  }

  void Serve() {
    std::string message(kMostMessage, '\0');
    while (true) {
      const ssize_t size = recv(0, message.data(), message.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      const auto order = ParseCourierOrder(std::string_view(message).substr(0, static_cast<size_t>(size)));
      if (!order) {
        Answer(ErrorMessage(order.error()));
        continue;
      }
      if (Act(*order)) return;
    }
    // The agent was killed: what it has left goes the same way.
    CleanUp(queue_.Drain(kOrphanUs));
  }

 private:
  using Kind = CourierOrder::Kind;

  UploadQueue::Options QueueOptions() {
    UploadQueue::Options options;
    options.open = [this] { return open_(options_.via, ""); };
    if (options_.node) options.backlog = options_.backlog;
    options.beside = [this](Store* store) {
      LookIntoFolders();
      if (options_.node) Beside(store);
    };
    return options;
  }

  // In the thread of the queue. Ranks of an elastic job write files that have no names beforehand. Their
  // launcher reads them as well, so they are left as they are when they have been uploaded.
  void LookIntoFolders() {
    std::set<std::string> folders;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      folders = folders_;
    }
    for (const std::string& folder : folders) {
      for (const NodeFile& file : NodeFilesIn(options_.job_dir, folder)) {
        if (found_.insert(file.name).second) AddUpload(id_, options_.job_dir, file.name, false, false);
        if (file.ended && ended_.insert(file.name).second) queue_.Done(StrCat(id_, "/", file.name));
      }
    }
  }

  // In the thread of the queue.
  void Beside(Store* store) {
    const int64_t now_us = clock_.MonotonicUs();
    if (now_us - cancel_us_ >= kCancelUs) {
      cancel_us_ = now_us;
      (void)BringCancel(*store, job_, options_.job_dir);
    }
    if (now_us - beat_us_ < kBeatUs) return;
    beat_us_ = now_us;
    std::set<std::string> beats;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      beats = beats_;
    }
    const std::string text = JsonWriter().BeginObject().Field("t", clock_.WallUs()).EndObject().Take() + "\n";
    for (const std::string& name : beats) (void)store->Put(StoredJobKey(id_, name), text);
  }

  void AddUpload(const std::string& id, const std::string& folder, const std::string& name, bool left,
                 bool free) {
    const bool lines = name.ends_with(".jsonl");
    const SegmentUpload::Options options{
        .lines = lines, .free = options_.node && free && !lines, .left = left};
    queue_.Add(StrCat(id, "/", name),
               std::make_unique<SegmentUpload>(StrCat(folder, "/", name), StoredJobKey(id, name), options));
  }

  // Of agents that were killed.
  void TakeLeftovers() {
    const std::string store = JobStoreToJson(options_.via);
    left_ = FindLeftovers(options_.job_dir);
    if (options_.node) {
      PosixFiles files;
      (void)files.MakeFolders(options_.job_dir);
      NoteStore(options_.job_dir, store);
      for (Leftover& left : FindLeftoversBeside(options_.job_dir, store)) left_.push_back(std::move(left));
    }
    for (const Leftover& left : left_) {
      const std::string job = left.folder.substr(0, left.folder.rfind('/'));
      for (const std::string& name : left.names) AddUpload(left.job, job, name, true, true);
    }
  }

  void Answer(const std::string& message) { (void)send(0, message.data(), message.size(), MSG_NOSIGNAL); }
  void AnswerDone(const Result<void>& done) { Answer(done ? "{}" : ErrorMessage(done.error())); }

  // True: that was the last order.
  bool Act(const CourierOrder& order) {
    switch (order.kind) {
      case Kind::kBring:
        AnswerDone(Bring(order.names));
        return false;
      case Kind::kCancel:
        AnswerDone(Cancel());
        return false;
      case Kind::kCreate:
        Create(order.name);
        return false;
      case Kind::kCode:
        AnswerDone(Code(order));
        return false;
      case Kind::kBlob:
        AnswerDone(Blob(order));
        return false;
      case Kind::kTrack:
        for (const std::string& name : order.names) Track(name);
        return false;
      case Kind::kDone:
        for (const std::string& name : order.names) queue_.Done(StrCat(id_, "/", name));
        return false;
      case Kind::kDrain:
      case Kind::kFinish:
        break;
    }
    const UploadQueue::Rest rest = queue_.Drain(order.seconds * kSecond);
    const bool finish = order.kind == Kind::kFinish;
    if (finish) CleanUp(rest);
    Answer(JsonWriter().BeginObject().Field("unsent", rest.unsent).Field("why", rest.why).EndObject().Take());
    // What is left is tried for as long as this process is let live.
    if (finish && rest.unsent > 0) CleanUp(queue_.Drain(kOrphanUs));
    return finish;
  }

  Result<Store*> Jobs() {
    if (jobs_ == nullptr) {
      OC_TRY(opened, open_(options_.via, ""));
      jobs_ = std::move(opened);
    }
    return jobs_.get();
  }

  Result<SnapshotStore> Repository() {
    OC_TRY_VOID(PosixFiles().MakeFolders(options_.store_dir));
    OC_TRY(objects, open_(options_.via, "store"));
    return SnapshotStore::Open(options_.store_dir, {.objects = std::shared_ptr<Store>(std::move(objects))});
  }

  Result<void> Cancel() {
    OC_TRY(jobs, Jobs());
    return BringCancel(*jobs, job_, options_.job_dir);
  }

  // Without names: the attempts of a plain job; those of an array are too many to be brought unasked.
  Result<void> Bring(const std::vector<std::string>& prefixes) {
    OC_TRY(jobs, Jobs());
    OC_TRY_VOID(BringSpec(*jobs, job_, options_.job_dir));
    const auto spec = PosixFiles().Read(options_.job_dir + "/spec.json");
    if (prefixes.empty() && spec && JsonMember(*spec, "array").empty())
      return BringAttempts(*jobs, job_, options_.job_dir);
    for (const std::string& prefix : prefixes)
      OC_TRY_VOID(BringReports(*jobs, job_, prefix, options_.job_dir));
    return {};
  }

  void Create(const std::string& name) {
    auto jobs = Jobs();
    auto text =
        jobs ? CreateFromFile(*jobs, job_, options_.job_dir, name) : Result<std::string>(Fail(jobs.error()));
    Answer(text ? JsonWriter().BeginObject().Field("text", *text).EndObject().Take()
                : ErrorMessage(text.error()));
  }

  // Given up when the agent says anything: it waits for nothing but the answer.
  Result<void> Code(const CourierOrder& order) {
    OC_TRY(store, Repository());
    MaterialiseOptions options;
    options.cancelled = [] {
      pollfd line{0, POLLIN, 0};
      return poll(&line, 1, 0) > 0;
    };
    OC_TRY_VOID(Materialise(store, order.name, order.to, options));
    return {};
  }

  Result<void> Blob(const CourierOrder& order) {
    OC_TRY(store, Repository());
    OC_TRY(bytes, store.GetBlob(order.name));
    return PosixFiles().CreateExclusive(order.to, bytes);
  }

  void Track(const std::string& name) {
    const bool folder = name.ends_with('/');
    if (!folder) AddUpload(id_, options_.job_dir, name, false, true);
    tasks_ = tasks_ || name.find("/task-") != std::string::npos;
    const std::lock_guard<std::mutex> lock(mutex_);
    attempts_.insert(name.substr(0, name.find('/')));
    if (folder) folders_.insert(name.substr(0, name.size() - 1));
    if (IsReport(name)) beats_.insert(StrCat(name.substr(0, name.size() - 6), ".beat"));
  }

  // When all is in the store: on a node it needs no place any more, elsewhere the next agent has nothing to
  // do.
  void CleanUp(const UploadQueue::Rest& rest) {
    if (rest.unsent > 0 || !rest.why.empty()) return;
    for (const Leftover& left : left_) {
      MarkSent(left.folder);
      if (options_.node) RemoveSent(left);
    }
    left_.clear();
    if (tasks_) return;  // agents of other tasks use the same folder
    for (const std::string& attempt : attempts_) {
      const Leftover own{id_, StrCat(options_.job_dir, "/", attempt), {}};
      if (options_.node && IsShared(own.folder)) continue;
      MarkSent(own.folder);
      if (options_.node) RemoveAttempt(own);
    }
  }

  const CourierOptions options_;
  const JobStoreOpener open_;
  const std::string id_, job_;
  const PosixClock clock_;
  std::unique_ptr<Store> jobs_;
  std::vector<Leftover> left_;
  std::set<std::string> attempts_;
  bool tasks_ = false;                   // it is an array
  int64_t cancel_us_ = 0, beat_us_ = 0;  // only of the queue's thread
  std::set<std::string> found_, ended_;  // likewise: names in the folders below
  std::mutex mutex_;                     // guards the next two
  std::set<std::string> beats_;
  std::set<std::string> folders_;  // in which files appear
  UploadQueue queue_;              // last: its thread uses the others
};

}  // namespace

Result<int> RunCourier(const CourierOptions& options, const JobStoreOpener& open) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) std::signal(signal, SIG_IGN);
  // Nobody's child: agents count theirs as ranks'.
  const pid_t child = fork();
  if (child < 0) return Fail(ErrnoError(errno, "cannot start the courier"));
  if (child > 0) return 0;
  CourierServer(options, open).Serve();
  _exit(0);
}

}  // namespace overcap
