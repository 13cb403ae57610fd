// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/node_state.h"

#include <algorithm>
#include <string>

namespace overcap {
namespace {

enum class NodeWord { kUp, kDown, kDrain, kAsleep, kReserved, kSilent, kNothing };

struct WordRow {
  std::string_view word;
  NodeWord meaning;
};

constexpr WordRow kWords[] = {
    {"idle", NodeWord::kUp},
    {"mixed", NodeWord::kUp},
    {"mix", NodeWord::kUp},
    {"allocated", NodeWord::kUp},
    {"alloc", NodeWord::kUp},
    {"completing", NodeWord::kUp},
    {"comp", NodeWord::kUp},
    {"planned", NodeWord::kUp},
    {"plnd", NodeWord::kUp},
    {"blocked", NodeWord::kUp},
    {"power_up", NodeWord::kUp},
    {"powering_up", NodeWord::kUp},
    {"down", NodeWord::kDown},
    {"error", NodeWord::kDown},
    {"fail", NodeWord::kDown},
    {"failing", NodeWord::kDown},
    {"failg", NodeWord::kDown},
    {"future", NodeWord::kDown},
    {"futr", NodeWord::kDown},
    {"unknown", NodeWord::kDown},
    {"unk", NodeWord::kDown},
    {"inval", NodeWord::kDown},
    {"invalid_reg", NodeWord::kDown},
    {"perfctrs", NodeWord::kReserved},
    {"npc", NodeWord::kReserved},
    {"drain", NodeWord::kDrain},
    {"drained", NodeWord::kDrain},
    {"draining", NodeWord::kDrain},
    {"drng", NodeWord::kDrain},
    {"undrain", NodeWord::kNothing},
    {"reboot", NodeWord::kDrain},
    {"reboot_issued", NodeWord::kDrain},
    {"reboot_requested", NodeWord::kDrain},
    {"reboot^", NodeWord::kDrain},
    {"maint", NodeWord::kReserved},
    {"maintenance", NodeWord::kReserved},
    {"reserved", NodeWord::kReserved},
    {"resv", NodeWord::kReserved},
    {"powered_down", NodeWord::kAsleep},
    {"powering_down", NodeWord::kAsleep},
    {"power_down", NodeWord::kAsleep},
    {"pow_dn", NodeWord::kAsleep},
    {"not_responding", NodeWord::kSilent},
    {"no_respond", NodeWord::kSilent},
    {"cloud", NodeWord::kNothing},
    {"dynamic_norm", NodeWord::kNothing},
    {"dynamic_future", NodeWord::kNothing},
    {"resume", NodeWord::kNothing},
    {"cancel_reboot", NodeWord::kNothing},
};

struct FlagRow {
  char flag;
  NodeWord meaning;
};
// '+' and '-' at the end are told apart from the flags of StateComplete by nothing following them.
constexpr FlagRow kFlags[] = {{'*', NodeWord::kSilent}, {'~', NodeWord::kAsleep}, {'#', NodeWord::kUp},
                              {'!', NodeWord::kAsleep}, {'%', NodeWord::kAsleep}, {'$', NodeWord::kReserved},
                              {'@', NodeWord::kDrain},  {'^', NodeWord::kDrain},  {'-', NodeWord::kNothing},
                              {'+', NodeWord::kNothing}};

void Apply(NodeWord word, NodeStateMeaning* meaning) {
  switch (word) {
    case NodeWord::kDown:
      meaning->down = true;
      break;
    case NodeWord::kDrain:
      meaning->draining = true;
      break;
    case NodeWord::kAsleep:
      meaning->asleep = true;
      break;
    case NodeWord::kReserved:
      meaning->reserved = true;
      break;
    case NodeWord::kSilent:
      meaning->responding = false;
      break;
    case NodeWord::kUp:
    case NodeWord::kNothing:
      break;
  }
}

bool TakeWord(std::string_view word, NodeStateMeaning* meaning) {
  const auto* row =
      std::find_if(std::begin(kWords), std::end(kWords), [&](const WordRow& r) { return r.word == word; });
  if (row == std::end(kWords)) return false;
  Apply(row->meaning, meaning);
  return true;
}

void TakeFlags(std::string* text, NodeStateMeaning* meaning) {
  while (!text->empty()) {
    const auto* row = std::find_if(std::begin(kFlags), std::end(kFlags),
                                   [&](const FlagRow& r) { return r.flag == text->back(); });
    if (row == std::end(kFlags)) return;
    Apply(row->meaning, meaning);
    text->pop_back();
  }
}

}  // namespace

NodeStateMeaning ReadNodeState(std::string_view raw) {
  NodeStateMeaning meaning;
  std::string text(raw);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  TakeFlags(&text, &meaning);
  std::string_view rest = text;
  bool known = !rest.empty();
  for (bool first = true; !rest.empty(); first = false) {
    const size_t plus = std::min(rest.find('+'), rest.size());
    // A flag that is not known changes nothing; a base state that is not known leaves everything open.
    if (!TakeWord(rest.substr(0, plus), &meaning) && first) known = false;
    rest.remove_prefix(std::min(plus + 1, rest.size()));
  }
  if (!known) return {};
  meaning.known = true;
  meaning.takes_jobs =
      !meaning.down && !meaning.draining && !meaning.reserved && (meaning.responding || meaning.asleep);
  return meaning;
}

}  // namespace overcap
