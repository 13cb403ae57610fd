// SPDX-License-Identifier: Apache-2.0
// The snapshots of a repository: put, list, find, forget.
#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "snapshot/format/key_time.h"
#include "snapshot/parallel.h"
#include "snapshot/repository/repository.h"

namespace overcap {
namespace {

constexpr std::string_view kLatest = "latest";
constexpr size_t kShortestId = 4, kIdSize = 64, kMostNamed = 5;

// Oldest first; `odd` gets the keys that are none of a snapshot.
Result<std::vector<SnapshotKey>> ListKeys(const Store& store, std::string_view workspace,
                                          std::vector<std::string>* odd) {
  std::string prefix = "snapshots/";
  if (!workspace.empty()) {
    OC_TRY_VOID(ValidWorkspaceName(workspace));
    prefix += StrCat(workspace, "/");
  }
  OC_TRY(objects, store.ListAll(prefix));
  std::vector<SnapshotKey> keys;
  for (const StoredObjectInfo& object : objects) {
    if (std::optional<SnapshotKey> key = ParseSnapshotKey(object.key)) {
      keys.push_back(std::move(*key));
    } else if (odd != nullptr) {
      odd->push_back(StrCat(Quoted(object.key, 300), " has not the name of a snapshot"));
    }
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const SnapshotKey& a, const SnapshotKey& b) { return a.time_us < b.time_us; });
  return keys;
}

Result<NamedSnapshot> Load(const Repository& repository, const SnapshotKey& key) {
  const std::string text = key.Text();
  OC_TRY(json, repository.GetSealed("snapshots", text));
  OC_TRY(record, DecodeSnapshotRecord(json, text));
  if (record.workspace != key.workspace || record.time_us != key.time_us)
    return Fail(ErrorCode::kCorrupt, StrCat("snapshot ", Quoted(text, 300), " is one of another name"));
  return NamedSnapshot{key, std::move(record)};
}

std::string OfWhat(std::string_view workspace) {
  return workspace.empty() ? "" : StrCat(" of workspace ", Quoted(workspace));
}

tl::unexpected<Error> NoSuch(std::string_view workspace, std::string_view name) {
  return Fail(ErrorCode::kNotFound, StrCat("there is no snapshot ", Quoted(name, 80), OfWhat(workspace)),
              "see those that there are with 'overcap workspace ls'");
}

// How many snapshots before the newest: 0 of "latest", 2 of "latest~2".
std::optional<size_t> StepsBack(std::string_view name) {
  if (!name.starts_with(kLatest)) return std::nullopt;
  name.remove_prefix(kLatest.size());
  if (name.empty()) return 0;
  const std::optional<long long> steps = name[0] == '~' ? ParseInt(name.substr(1)) : std::nullopt;
  if (!steps || *steps < 0) return std::nullopt;
  return static_cast<size_t>(*steps);
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

tl::unexpected<Error> Several(std::string_view name, const std::vector<SnapshotKey>& keys) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min(keys.size(), kMostNamed); ++i)
    ids.push_back(keys[i].id.Hex().substr(0, 16));
  if (keys.size() > kMostNamed) ids.push_back("...");
  return Fail(ErrorCode::kUsage,
              StrCat(keys.size(), " snapshots begin with ", Quoted(name), ": ", Join(ids, ", ")),
              "give more digits");
}

// The records of all keys, in order; kNotFound, kCorrupt and kConflict are of single ones.
Result<std::vector<Result<NamedSnapshot>>> LoadAll(const Repository& repository,
                                                   const std::vector<SnapshotKey>& keys) {
  std::vector<Result<NamedSnapshot>> loaded(keys.size(), Fail(ErrorCode::kNotFound, ""));
  OC_TRY_VOID(ParallelFor(keys.size(), [&](size_t i) -> Result<void> {
    loaded[i] = Load(repository, keys[i]);
    if (loaded[i]) return {};
    const ErrorCode code = loaded[i].error().code;
    const bool of_one =
        code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt || code == ErrorCode::kConflict;
    return of_one ? Result<void>() : Fail(loaded[i].error());
  }));
  return loaded;
}

// Pure: the places of `keys`, oldest first, so that no child comes before its parent, whatever the clocks of
// their hosts said. A record that cannot be read has only its time.
std::vector<size_t> OrderByParents(const std::vector<SnapshotKey>& keys,
                                   const std::vector<Result<NamedSnapshot>>& loaded) {
  std::unordered_map<Digest, size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) places.emplace(keys[i].id, i);
  std::vector<size_t> parents(keys.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto parent = loaded[i] ? Digest::FromHex(loaded[i]->record.parent) : std::nullopt;
    const auto place = parent ? places.find(*parent) : places.end();
    if (place != places.end() && place->second != i) parents[i] = place->second;
  }
  std::vector<int64_t> times(keys.size(), INT64_MIN);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<size_t> chain;  // up to the first whose time is known; a record cannot name one that names it
    for (size_t at = i; at < keys.size() && times[at] == INT64_MIN && chain.size() <= keys.size();
         at = parents[at])
      chain.push_back(at);
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
      const size_t parent = parents[*at];
      times[*at] = keys[*at].time_us;
      if (parent < keys.size()) times[*at] = std::max(times[*at], times[parent] + 1);
    }
  }
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  return order;
}

// Pure: which of `keys`, oldest first, `name` means.
Result<SnapshotKey> Choose(const std::vector<SnapshotKey>& keys, std::string_view workspace,
                           std::string_view name) {
  if (const std::optional<size_t> steps = StepsBack(name)) {
    if (*steps >= keys.size()) return NoSuch(workspace, name);
    return keys[keys.size() - 1 - *steps];
  }
  if (!IsHex(name) || name.size() > kIdSize) return NoSuch(workspace, name);
  if (name.size() < kShortestId)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(name), " is too short for the id of a snapshot"),
                StrCat("give at least ", kShortestId, " digits, or 'latest'"));
  std::vector<SnapshotKey> found;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(found),
               [&](const SnapshotKey& key) { return key.id.Hex().starts_with(name); });
  if (found.empty()) return NoSuch(workspace, name);
  if (found.size() > 1) return Several(name, found);
  return found[0];
}

}  // namespace

Result<std::vector<NamedSnapshot>> Repository::Snapshots(std::string_view workspace,
                                                         std::vector<std::string>* damage) const {
  OC_TRY(keys, ListKeys(store(), workspace, damage));
  OC_TRY(loaded, LoadAll(*this, keys));
  std::vector<NamedSnapshot> snapshots;
  for (const size_t i : OrderByParents(keys, loaded)) {
    if (loaded[i]) {
      snapshots.push_back(std::move(*loaded[i]));
    } else if (loaded[i].error().code != ErrorCode::kNotFound && damage != nullptr) {  // else just forgotten
      damage->push_back(loaded[i].error().message);
    }
  }
  return snapshots;
}

Result<NamedSnapshot> Repository::Find(std::string_view workspace, std::string_view name) const {
  OC_TRY(keys, ListKeys(store(), workspace, nullptr));
  OC_TRY(key, Choose(keys, workspace, name));
  Result<NamedSnapshot> snapshot = Load(*this, key);
  // Written by this program or a later one, so that whatever has it as an ancestor is of a later time.
  const bool sure = name == kLatest && snapshot && snapshot->record.clock_us != 0;
  if (!sure && StepsBack(name)) {
    OC_TRY(loaded, LoadAll(*this, keys));
    const std::vector<size_t> order = OrderByParents(keys, loaded);
    snapshot = loaded[order[order.size() - 1 - *StepsBack(name)]];
  }
  if (!snapshot && snapshot.error().code == ErrorCode::kCorrupt && snapshot.error().hint.empty())
    snapshot.error().hint = "choose another snapshot: see 'overcap workspace ls'";
  return snapshot;
}

Result<NamedSnapshot> Repository::PutSnapshot(const SnapshotRecord& record) const {
  OC_TRY_VOID(ValidWorkspaceName(record.workspace));
  NamedSnapshot named{{record.workspace, 0, {}}, record};
  const std::string time = KeyTimeText(record.time_us);
  named.record.time_us = named.key.time_us = *ParseKeyTime(time);
  const std::string begin = StrCat("snapshots/", record.workspace, "/", time, "-");
  OC_TRY(id, PutSealed("snapshots", begin, EncodeSnapshotRecord(named.record)));
  named.key.id = id;
  return named;
}

Result<void> Repository::Forget(const NamedSnapshot& snapshot) const {
  return store().Remove(snapshot.key.Text());
}

}  // namespace overcap
