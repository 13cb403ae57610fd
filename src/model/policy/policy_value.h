// SPDX-License-Identifier: Apache-2.0
// One value of a policy file and what it may be. Whatever is wrong goes into the notes and the value keeps
// its default, so that one look at a file finds everything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "model/policy/policy.h"
#include "model/policy/policy_problems.h"
#include "model/yaml_tree.h"

namespace overcap {

class PolicyNotes {
 public:
  void Error(int line, std::string message, std::string hint = {});
  // Hosts of a list, from the budget that all lists of a file share; empty when it is wrong.
  std::vector<std::string> Hosts(int line, const std::string& what, const std::string& list);
  std::vector<PolicyProblem> Take() { return std::move(problems_); }

 private:
  std::vector<PolicyProblem> problems_;
  size_t hosts_left_ = 1'000'000;
  bool full_ = false;
};

constexpr int kMaxPolicyCount = 1'000'000;

class PolicyValue {
 public:
  // name: "'priority' of partition 'debug'", for messages.
  // line: that of its key.
  PolicyValue(PolicyNotes* notes, int line, const YamlTree& node, std::string name)
      : notes_(notes), line_(line), node_(node), name_(std::move(name)) {}

  int line() const { return line_; }
  const YamlTree& node() const { return node_; }
  const std::string& name() const { return name_; }
  PolicyNotes& notes() const { return *notes_; }
  bool IsNone() const { return node_.kind == YamlTree::Kind::kScalar && node_.text == "none"; }
  bool IsMap() const { return node_.kind == YamlTree::Kind::kMap; }

  // Each leaves *out as it is when the value is wrong.
  void Count(int min, int max, int* out) const;
  void CountOrNone(std::optional<int>* out) const;
  void Duration(int64_t max, int64_t* out) const;  // 0 is one
  void DurationOrNone(int64_t* out) const;         // at least 1; none: 0
  void Bytes(int64_t* out) const;
  void Number(double min, double max, double* out) const;
  void Switch(bool* out) const;
  void Name(std::string* out) const;
  void Names(std::vector<std::string>* out) const;  // sorted, each once; none: empty
  void Users(std::vector<std::string>* out) const;  // the same
  void Hosts(std::vector<std::string>* out) const;
  void Gpus(std::vector<TypedGpus>* out) const;  // "a40:8,rtx_6000:4" or a mapping
  void Time(int64_t* out_us) const;

  // A scalar's text, or nullptr after a note.
  const std::string* Text(std::string_view must_be) const;
  void Wrong(std::string_view must_be) const;  // "'x' must be a count, not 'y'"

 private:
  void Words(std::string_view kind, bool (*fits)(std::string_view), std::vector<std::string>* out) const;

  PolicyNotes* notes_;
  int line_;
  const YamlTree& node_;
  std::string name_;
};

bool IsPolicyName(std::string_view text);  // of labs, partitions, features, clusters
bool IsPolicyUser(std::string_view text);

// The words of a text with blanks and commas between them.
std::vector<std::string> PolicyWords(std::string_view text);

// One key of a mapping and what it sets.
template <typename T>
struct PolicyKey {
  std::string_view name;
  void (*read)(const PolicyValue& value, T* out);
};

// The keys of a mapping in order; note what is no mapping, and keys that stand twice or have no value.
// `owner`: "partition 'debug'"; "": the file itself.
std::vector<std::pair<std::string, PolicyValue>> PolicyEntries(PolicyNotes* notes, const YamlTree& node,
                                                               const std::string& owner);
void UnknownPolicyKey(const PolicyValue& value, std::string_view key, const std::string& owner,
                      const std::vector<std::string>& known);

template <typename T>
void ReadPolicyMap(PolicyNotes* notes, const YamlTree& node, const std::string& owner,
                   std::span<const PolicyKey<T>> keys, T* out) {
  for (const auto& [key, value] : PolicyEntries(notes, node, owner)) {
    const PolicyKey<T>* found = nullptr;
    for (const PolicyKey<T>& row : keys) found = row.name == key ? &row : found;
    if (found != nullptr) {
      found->read(value, out);
      continue;
    }
    std::vector<std::string> known;
    for (const PolicyKey<T>& row : keys) known.emplace_back(row.name);
    UnknownPolicyKey(value, key, owner, known);
  }
}

}  // namespace overcap
