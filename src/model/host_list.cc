// SPDX-License-Identifier: Apache-2.0
#include "model/host_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMaxDigits = 18;              // fits into 64 bits with room to add to
constexpr size_t kMaxNameBytes = 256'000'000;  // of all the names of one entry

struct Range {
  uint64_t first = 0, last = 0, step = 1;
  size_t width = 1;  // smaller numbers get zeros in front

  size_t Count() const { return std::min<uint64_t>((last - first) / step + 1, kMaxHosts + 1); }
};

// "n[1-3,7]": the text before the bracket and what stands in it.
struct Bracket {
  std::string_view before;
  std::vector<Range> ranges;

  size_t Count() const {
    size_t count = 0;
    for (const Range& range : ranges) count = std::min(count + range.Count(), kMaxHosts + 1);
    return count;
  }
};

struct Entry {
  std::vector<Bracket> brackets;
  std::string_view after;
};

// One bracket's place in the counting.
struct Wheel {
  const Bracket* bracket;
  size_t range = 0;
  uint64_t value = bracket->ranges.front().first;

  // To the next value; false after the last, then it stands on the first again.
  bool Turn() {
    const Range& current = bracket->ranges[range];
    if (current.last - value >= current.step) {
      value += current.step;
      return true;
    }
    range = range + 1 == bracket->ranges.size() ? 0 : range + 1;
    value = bracket->ranges[range].first;
    return range != 0;
  }
};

constexpr bool IsSeparator(char c) {
  return c == ',' || c == ' ' || (c >= '\t' && c <= '\r');
}

tl::unexpected<Error> Wrong(std::string_view entry, std::string_view why) {
  return Fail(ErrorCode::kUsage, StrCat("host list ", Quoted(entry), ": ", why));
}

std::optional<uint64_t> ParseNumber(std::string_view digits) {
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

// "7", "007-011", "0-8:2". As in Slurm the first number's length is the width of all.
std::optional<Range> ParseRange(std::string_view text) {
  std::optional<uint64_t> step = 1;
  if (const size_t mark = text.find_first_of(":/"); mark != text.npos) {
    step = ParseNumber(text.substr(mark + 1));
    text = text.substr(0, mark);
    if (text.find('-') == text.npos) return std::nullopt;
  }
  const size_t dash = text.find('-');
  const auto first = ParseNumber(text.substr(0, dash));
  const auto last = dash == text.npos ? first : ParseNumber(text.substr(dash + 1));
  if (!first || !last || !step || *step == 0 || *last < *first) return std::nullopt;
  return Range{*first, *last, *step, std::min(dash, text.size())};
}

Result<std::vector<Range>> ParseRanges(std::string_view entry, std::string_view inside) {
  std::vector<Range> ranges;
  while (true) {
    const size_t comma = inside.find(',');
    const std::string_view text = inside.substr(0, comma);
    const auto range = ParseRange(text);
    if (!range) return Wrong(entry, StrCat(Quoted(text), " is no number and no range"));
    ranges.push_back(*range);
    if (comma == inside.npos) return ranges;
    inside.remove_prefix(comma + 1);
  }
}

Result<Entry> ParseEntry(std::string_view text) {
  Entry entry;
  std::string_view rest = text;
  for (size_t at; (at = rest.find_first_of("[]")) != rest.npos;) {
    if (rest[at] == ']') return Wrong(text, "']' has no '[' before it");
    const size_t close = rest.find_first_of("[]", at + 1);
    if (close == rest.npos) return Wrong(text, "bracket is not closed");
    if (rest[close] == '[') return Wrong(text, "bracket inside a bracket");
    OC_TRY(ranges, ParseRanges(text, rest.substr(at + 1, close - at - 1)));
    entry.brackets.push_back({rest.substr(0, at), std::move(ranges)});
    rest.remove_prefix(close + 1);
  }
  entry.after = rest;
  return entry;
}

// kMaxHosts + 1 stands for any number above.
size_t CountHosts(const Entry& entry) {
  size_t count = 1;
  for (const Bracket& bracket : entry.brackets) {
    count = std::min(count * bracket.Count(), kMaxHosts + 1);
  }
  return count;
}

size_t LongestName(const Entry& entry) {
  size_t length = entry.after.size();
  for (const Bracket& bracket : entry.brackets) length += bracket.before.size() + kMaxDigits;
  return length;
}

void AppendNumber(uint64_t number, size_t width, std::string* out) {
  char digits[20];
  const size_t length = static_cast<size_t>(std::to_chars(digits, std::end(digits), number).ptr - digits);
  if (length < width) out->append(width - length, '0');
  out->append(digits, length);
}

void AppendWheel(const Wheel& wheel, std::string* out) {
  AppendNumber(wheel.value, wheel.bracket->ranges[wheel.range].width, out);
}

// Slurm's order: the last bracket turns fastest, then the first, the second and so on.
void AppendHosts(const Entry& entry, std::vector<std::string>* hosts) {
  std::vector<Wheel> wheels;
  for (const Bracket& bracket : entry.brackets) wheels.push_back({&bracket});
  Wheel& fastest = wheels.back();
  const size_t slow = wheels.size() - 1;
  std::string name;
  for (bool more = true; more;) {
    name.clear();
    for (size_t i = 0; i < slow; ++i) AppendWheel(wheels[i], &name.append(entry.brackets[i].before));
    name.append(entry.brackets[slow].before);
    const size_t fixed = name.size();
    do {
      name.resize(fixed);
      AppendWheel(fastest, &name);
      name.append(entry.after);
      hosts->push_back(name);
    } while (fastest.Turn());
    more = std::any_of(wheels.begin(), wheels.end() - 1, [](Wheel& wheel) { return wheel.Turn(); });
  }
}

bool IsNameByte(char c) {
  static constexpr auto kTable = [] {
    std::array<bool, 256> table{};
    for (int i = 0; i < 256; ++i) {
      const char byte = static_cast<char>(i);
      table[i] = !IsSeparator(byte) && byte != '[' && byte != ']';
    }
    return table;
  }();
  return kTable[static_cast<unsigned char>(c)];
}

struct EntryText {
  std::string_view text;
  bool plain = true;  // no bracket in it
};

// Cuts the next entry off; separators in brackets are its own.
EntryText TakeEntry(std::string_view* list) {
  EntryText entry;
  bool inside = false;
  size_t end = 0;
  for (; end < list->size(); ++end) {
    const char c = (*list)[end];
    if (IsNameByte(c)) continue;
    if (!inside && IsSeparator(c)) break;
    if (c == '[' || c == ']') {
      inside = c == '[';
      entry.plain = false;
    }
  }
  entry.text = list->substr(0, end);
  list->remove_prefix(std::min(end + 1, list->size()));
  return entry;
}

// Hosts of an entry with brackets.
Result<void> AppendExpanded(std::string_view text, std::vector<std::string>* hosts) {
  OC_TRY(entry, ParseEntry(text));
  const size_t count = CountHosts(entry), needed = hosts->size() + count;
  if (needed > kMaxHosts) return Wrong(text, StrCat("more than ", kMaxHosts, " hosts"));
  if (count * LongestName(entry) > kMaxNameBytes) return Wrong(text, "too much text for that many hosts");
  if (needed > hosts->capacity()) hosts->reserve(std::max(needed, 2 * hosts->capacity()));
  AppendHosts(entry, hosts);
  return {};
}

}  // namespace

Result<std::vector<std::string>> ExpandHostList(std::string_view list) {
  std::vector<std::string> hosts;
  hosts.reserve(std::min<size_t>(std::count(list.begin(), list.end(), ',') + 1, kMaxHosts));
  while (!list.empty()) {
    const auto [text, plain] = TakeEntry(&list);
    if (text.empty()) continue;
    if (!plain) {
      OC_TRY_VOID(AppendExpanded(text, &hosts));
    } else if (hosts.size() < kMaxHosts) {
      hosts.emplace_back(text);
    } else {
      return Wrong(text, StrCat("more than ", kMaxHosts, " hosts"));
    }
  }
  return hosts;
}

}  // namespace overcap
