// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/pulled_source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "control/fanout/folder_chunks.h"
#include "control/fanout/pull_round.h"
#include "control/fanout/sent_repository.h"
#include "launch/ssh/ssh_transport.h"
#include "net/http/url.h"
#include "net/tcp.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"

namespace overcap {
namespace {

constexpr int kAtOnce = 2, kRounds = 4;
constexpr size_t kObjectsPerFrame = 1000;

using Objects = std::map<std::string, StoredObjectInfo>;

Result<Objects> ListObjects(const Store& store) {
  OC_TRY(all, store.ListAll(""));
  Objects objects;
  for (StoredObjectInfo& object : all) {
    if (object.key.starts_with(".overcap/")) continue;
    std::string key = object.key;
    objects.emplace(std::move(key), std::move(object));
  }
  return objects;
}

PullOrder OrderFor(const PullableStore& store, const Objects& objects, const FanoutRequest& request) {
  PullOrder order;
  order.url = store.url;
  fanout::Listing listing;
  const auto send = [&] {
    order.frames.push_back(fanout::Encode(fanout::ToNode(std::exchange(listing, {}))));
  };
  for (const auto& [key, object] : objects) {
    listing.objects.push_back({key, object.size, object.modified_us, object.version, object.md5});
    if (listing.objects.size() == kObjectsPerFrame) send();
  }
  send();
  order.frames.push_back(fanout::Encode(fanout::ToNode(
      fanout::Pull{fanout::kProtocol, request.target, request.force, store.store->Location(), store.ca})));
  return order;
}

// Why no node can, as far as that is known before one is asked; "" when it may be.
std::string WhyNotFromNodes(const PullableStore& store, const Objects& objects,
                            const FanoutRequest& request) {
  const Result<std::string> text = store.url(objects.begin()->first);
  if (!text) return text.error().message;
  const Result<Url> url = ParseUrl(*text);
  if (!url) return url.error().message;
  const bool here = url->origin.host == "localhost" || IsLoopback(url->origin.host);
  const bool others = std::any_of(request.hosts.begin(), request.hosts.end(),
                                  [](const std::string& host) { return !IsThisHost(host); });
  return here && others ? StrCat(Quoted(url->origin.Text(), 200), " is an address of this machine alone")
                        : "";
}

tl::unexpected<Error> NotAsListed(const std::string& host) {
  return Fail(ErrorCode::kCorrupt,
              StrCat("host '", host, "' says that it has pulled something else than is listed"));
}

// The source as this node has described it; chunks that are asked of the head come from the store.
Result<FanoutSource> SourceOf(PulledNode* node, const PullableStore& store, const Objects& objects,
                              const std::string& host) {
  const auto tree_id = Digest::FromHex(node->known->tree);
  if (!tree_id) return NotAsListed(host);
  OC_TRY(repository, RepositoryOf(node->objects, *tree_id, nullptr));
  OC_TRY(index, ChunkIndex::Load(repository));
  ChunkReader reader(repository, index);
  const GetMeta get = [&reader](const Digest& id) { return reader.Get(id); };
  OC_TRY(tree, WantedTree::Load(*tree_id, {{}, ".overcap", false}, get));
  FanoutSource source;
  for (uint32_t entry = 0; entry < tree.size(); ++entry) {
    if (tree[entry].IsFolder()) continue;
    const auto listed = objects.find(tree.Path(entry));
    if (!tree[entry].IsFile() || listed == objects.end() || listed->second.size != tree[entry].size)
      return NotAsListed(host);
    ++source.files;
    source.bytes += tree[entry].size;
  }
  if (source.files != static_cast<int64_t>(objects.size())) return NotAsListed(host);
  OC_TRY(made, FolderChunks::Of(tree, get, ""));
  auto chunks = std::make_shared<const FolderChunks>(std::move(made));
  auto listed = std::make_shared<const Objects>(objects);
  source.read = [chunks, listed, from = store.store](const fanout::WantedChunk& chunk, char* out) {
    const auto spot = chunks->spots().find(chunk.id);
    if (spot == chunks->spots().end() || spot->second.size != chunk.size) return false;
    std::string bytes;
    const auto got = from->GetIntoIf(listed->at(chunks->files()[spot->second.file]), spot->second.offset,
                                     chunk.size, &bytes);
    if (!got || bytes.size() != chunk.size) return false;
    bytes.copy(out, bytes.size());
    return true;
  };
  source.tree = *tree_id;
  source.objects = std::move(node->objects);
  return source;
}

class Puller {
 public:
  Puller(const PullableStore& store, const FanoutRequest& request) : store_(store), request_(request) {
    failed_.nodes.resize(request.hosts.size());
    for (size_t i = 0; i < request.hosts.size(); ++i) failed_.nodes[i].host = request.hosts[i];
  }

  Result<PullOutcome> Run() {
    OC_TRY(objects, ListObjects(*store_.store));
    PullOutcome outcome;
    if (objects.empty()) {
      outcome.why_not = "it is empty";
      return outcome;
    }
    outcome.why_not = WhyNotFromNodes(store_, objects, request_);
    for (int round = 0; outcome.why_not.empty() && round < kRounds; ++round) {
      std::vector<int> nodes;
      for (int i = 0; i < kAtOnce && next_ < static_cast<int>(request_.hosts.size()); ++i)
        nodes.push_back(next_++);
      if (nodes.empty()) {
        outcome.failed = std::move(failed_);
        return outcome;
      }
      OC_TRY(settled, Round(nodes, &objects, &outcome));
      if (settled) return outcome;
    }
    if (outcome.why_not.empty()) outcome.why_not = "the first hosts cannot be reached";
    return outcome;
  }

 private:
  // False: the next ones may try.
  Result<bool> Round(const std::vector<int>& nodes, Objects* objects, PullOutcome* outcome) {
    const PullOrder order = OrderFor(store_, *objects, request_);
    std::vector<PulledNode> ended = RunPullRound(nodes, order, request_);
    if (request_.stop != nullptr && *request_.stop) return Fail(ErrorCode::kConflict, "stopped");
    for (PulledNode& node : ended) {
      if (node.known) return Take(&ended, &node, *objects, outcome);
    }
    for (const PulledNode& node : ended) {
      const std::string& host = request_.hosts[static_cast<size_t>(node.node)];
      if (node.failed) failed_.nodes[static_cast<size_t>(node.node)].error = node.failed;
      if (!node.not_pulled) continue;
      if (node.not_pulled->code == ErrorCode::kConflict)
        return Again(nodes, *node.not_pulled, objects, outcome);
      outcome->why_not = StrCat("host '", host, "' cannot read it: ", ToUtf8(node.not_pulled->message));
    }
    return !outcome->why_not.empty();
  }

  Result<bool> Take(std::vector<PulledNode>* ended, PulledNode* first, const Objects& objects,
                    PullOutcome* outcome) {
    OC_TRY(source, SourceOf(first, store_, objects, request_.hosts[static_cast<size_t>(first->node)]));
    for (const PulledNode& node : *ended) {
      if (node.known) source.pulled.emplace(node.node, *node.known);
    }
    outcome->source = std::move(source);
    return true;
  }

  // An object was replaced: the same nodes go on with a new listing, once.
  Result<bool> Again(const std::vector<int>& nodes, const Error& changed, Objects* objects,
                     PullOutcome* outcome) {
    if (std::exchange(listed_anew_, true)) return Fail(changed);
    OC_TRY(anew, ListObjects(*store_.store));
    if (anew.empty()) return Fail(changed);
    *objects = std::move(anew);
    return Round(nodes, objects, outcome);
  }

  const PullableStore& store_;
  const FanoutRequest& request_;
  FanoutReport failed_;
  int next_ = 0;
  bool listed_anew_ = false;
};

}  // namespace

Result<PullOutcome> PullByNodes(const PullableStore& store, const FanoutRequest& request) {
  OC_TRY_VOID(CheckFanoutHosts(request.hosts));
  const IgnoredPipeSignal ignored;
  return Puller(store, request).Run();
}

}  // namespace overcap
