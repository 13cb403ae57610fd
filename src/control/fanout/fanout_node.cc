// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout_node.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "control/fanout/fanout_target.h"
#include "control/fanout/fix_environments.h"
#include "control/fanout/node_chunks.h"
#include "control/fanout/node_uplink.h"
#include "control/fanout/peer_server.h"
#include "control/fanout/virtual_packs.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/repository.h"
#include "snapshot/restore/restore.h"
#include "stores/all_stores.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kProblemsTold = 20;

// By these others may reach this node: first the one that the head has used.
std::vector<std::string> AddressesOfThisHost() {
  std::vector<std::string> addresses;
  const char* connection = getenv("SSH_CONNECTION");
  const std::vector<std::string> words = Split(connection != nullptr ? connection : "", ' ');
  if (words.size() == 4 && !IsLoopback(words[2])) addresses.push_back(words[2]);
  for (const std::string& own : OwnAddresses()) {
    if (std::find(addresses.begin(), addresses.end(), own) == addresses.end()) addresses.push_back(own);
  }
  if (addresses.empty()) addresses.push_back("127.0.0.1");
  return addresses;
}

// What `O` frames brought, as a repository in memory whose data comes from `source`.
Result<Repository> RepositoryOf(const std::vector<fanout::Object>& objects, const Digest& tree,
                                ChunkSource* source) {
  OC_TRY(memory, OpenStore(StrCat("mem:fanout-", tree.Hex()), true));
  for (const fanout::Object& object : objects) OC_TRY_VOID(memory->Put(object.key, object.content));
  OC_TRY(store, VirtualPacks::Open(std::shared_ptr<Store>(std::move(memory)), source));
  return Repository::Open({.store = std::move(store)});
}

class FanoutNode {
 public:
  explicit FanoutNode(NodeUplink* uplink) : uplink_(*uplink) {}

  Result<void> Run() {
    OC_TRY(work, uplink_.WaitForWork());
    const fanout::Start& start = work.start;
    if (start.protocol != fanout::kProtocol)
      return Fail(ErrorCode::kConflict, "the head of the fan-out speaks another protocol");
    const auto tree = Digest::FromHex(start.tree);
    const auto key = LinkKey::FromHex(start.key);
    if (!tree || !key) return Fail(ErrorCode::kCorrupt, "the head of the fan-out names no tree");
    OC_TRY(target, FanoutTarget::Take(start.target, start.force));
    NodeChunks chunks(&uplink_, *key, target.old ? &*target.old : nullptr);
    OC_TRY(repository, RepositoryOf(work.objects, *tree, &chunks));
    OC_TRY(report, Fill(repository, *tree, target));
    fanout::Ready ready = ReadyOf(report);
    OC_TRY(own, Finished(repository, *tree, target, start, &ready));
    chunks.Close();
    std::unique_ptr<PeerServer> server;
    if (ready.failed == 0 && own.OpenFolder()) {
      Result<std::unique_ptr<PeerServer>> started = PeerServer::Start(own, *key);
      if (started) server = *std::move(started);
    }
    if (server) ready.port = server->port();
    ready.from_peers = chunks.from_peers();
    ready.reused = chunks.reused();
    ready.from_head = uplink_.received() + chunks.from_head();
    target.lock = {};
    uplink_.Send(ready);
    uplink_.WaitForFinish();
    return {};
  }

 private:
  Result<RestoreReport> Fill(const Repository& repository, const Digest& tree, const FanoutTarget& target) {
    RestoreRequest request;
    request.tree = tree;
    request.target = target.path;
    request.remove_extra = true;
    request.proven = true;  // by NodeChunks
    request.seen_file = target.Local("seen");
    request.stop = uplink_.gone();
    request.progress = [this](const RestoreProgress& progress) {
      uplink_.Send(fanout::Progress{progress.bytes_done, progress.bytes_total});
    };
    return Restore(repository, request);
  }

  static fanout::Ready ReadyOf(const RestoreReport& report) {
    fanout::Ready ready;
    ready.files = report.files;
    ready.bytes = report.bytes;
    ready.written_files = report.written_files;
    ready.written_bytes = report.written_bytes;
    ready.same_files = report.same_files;
    ready.removed = report.removed;
    ready.failed = report.failed;
    for (const RestoreProblem& problem : report.problems) {
      if (ready.problems.size() < kProblemsTold)
        ready.problems.push_back(StrCat(Quoted(problem.path, 200), ": ", problem.what));
    }
    return ready;
  }

  // What files held before the last fan-out is of no use once they have come anew.
  static void ForgetKept(const FanoutTarget& target) {
    const std::string folder = target.Local("kept");
    const Result<std::vector<std::string>> names = PosixFiles().List(folder);
    if (!names) return;
    for (const std::string& name : *names) (void)PosixFiles().Remove(StrCat(folder, "/", name));
  }

  // Paths are put right, and what is where is noted for others and for the next time.
  static Result<FolderChunks> Finished(const Repository& repository, const Digest& tree,
                                       const FanoutTarget& target, const fanout::Start& start,
                                       fanout::Ready* ready) {
    OC_TRY(index, ChunkIndex::Load(repository));
    ChunkReader reader(repository, index);
    const GetMeta get = [&reader](const Digest& id) { return reader.Get(id); };
    OC_TRY(wanted, WantedTree::Load(tree, {{}, ".overcap", true}, get));
    OC_TRY(chunks, FolderChunks::Of(wanted, get, target.path));
    OC_TRY_VOID(chunks.OpenFolder());
    if (start.fix && ready->failed == 0) {
      ForgetKept(target);
      OC_TRY(fixed, FixEnvironments(wanted, {target.path, start.old, FanoutTarget::kKept}, &chunks));
      ready->fixed = static_cast<int64_t>(fixed.size());
    }
    // Without it the next fan-out only fetches more.
    (void)PosixFiles().WriteAtomic(target.Local("chunks"), chunks.Encode(), false);
    return chunks;
  }

  NodeUplink& uplink_;
};

}  // namespace

Result<int> RunFanoutNode(const std::vector<std::string>&) {
  (void)signal(SIGPIPE, SIG_IGN);
  node_link::Ends ends{Fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)),
                       Fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))};
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!ends.read || !ends.write || !null) return Fail(ErrnoError(errno, "cannot open the link of a fan-out"));
  (void)dup2(null.Get(), STDIN_FILENO);
  (void)dup2(STDERR_FILENO, STDOUT_FILENO);
  OC_TRY(uplink, NodeUplink::Make(std::move(ends)));
  uplink->Send(fanout::Hello{fanout::kProtocol, OVERCAP_VERSION, OwnHostName(), AddressesOfThisHost()});
  const Result<void> done = FanoutNode(uplink.get()).Run();
  if (!done) uplink->Send(fanout::Trouble{done.error()});
  uplink->Flush();
  return done ? 0 : ExitStatus(done.error().code);
}

}  // namespace overcap
