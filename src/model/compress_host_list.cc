// SPDX-License-Identifier: Apache-2.0
// CompressHostList(): neighbours that differ in one number share a bracket; neighbours of that kind that have
// the same bracket and differ in one number before it share a second one.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap {
namespace {

constexpr size_t kMaxDigits = 18;
constexpr size_t kMaxSlurmHosts = 65'536;  // in one bracket

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

size_t EndOfDigits(std::string_view text, size_t begin) {
  while (begin < text.size() && IsDigit(text[begin])) ++begin;
  return begin;
}

// Where in `a` the number begins that is the only difference to `b` (for equal names: their last number).
std::optional<size_t> OnlyNumberThatDiffers(std::string_view a, std::string_view b) {
  size_t begin = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  while (begin > 0 && IsDigit(a[begin - 1])) --begin;
  const size_t a_end = EndOfDigits(a, begin), b_end = EndOfDigits(b, begin);
  const bool numbers = a_end > begin && b_end > begin && a.substr(a_end) == b.substr(b_end);
  if (!numbers || std::max(a_end, b_end) - begin > kMaxDigits) return std::nullopt;
  return begin;
}

// The number of `name` when it has the form of the names before it, else "".
std::string_view NumberIn(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before)) return {};
  const size_t end = EndOfDigits(name, before.size());
  if (name.substr(end) != after || end - before.size() > kMaxDigits) return {};
  return name.substr(before.size(), end - before.size());
}

// Numbers one after the other as "08-11,13".
class NumberList {
 public:
  void Add(std::string_view digits) {
    if (!text_.empty() && digits == Successor() && next_.size() <= kMaxDigits) {
      last_ = digits;
      return;
    }
    Close();
    if (!text_.empty()) text_ += ',';
    text_ += digits;
    first_ = last_ = digits;
  }

  std::string Take() {
    Close();
    return StrCat("[", text_, "]");
  }

 private:
  // last_ + 1, as long as last_ or, after all nines, one longer: just as ranges are expanded.
  const std::string& Successor() {
    next_ = last_;
    size_t at = next_.size();
    while (at > 0 && next_[at - 1] == '9') next_[--at] = '0';
    if (at == 0) {
      next_.insert(0, 1, '1');
    } else {
      ++next_[at - 1];
    }
    return next_;
  }

  void Close() {
    if (last_ != first_) text_.append("-").append(last_);
  }

  std::string text_, next_;
  std::string_view first_, last_;
};

struct Piece {
  std::string left, bracket, right;  // a plain name is all `left`
};

// The names from `begin` on that differ from each other in one number only: `end` is behind the last,
// `number_at` where the number begins. Alone when there is none.
struct Group {
  size_t end, number_at = 0;
};

template <typename NameOf, typename FitsAfter>
Group GroupFrom(size_t begin, size_t count, const NameOf& name_of, const FitsAfter& fits) {
  const std::string_view first = name_of(begin);
  if (begin + 1 == count || !fits(begin + 1)) return {begin + 1};
  const auto at = OnlyNumberThatDiffers(first, name_of(begin + 1));
  if (!at) return {begin + 1};
  const std::string_view before = first.substr(0, *at), after = first.substr(EndOfDigits(first, *at));
  size_t end = begin + 2;
  while (end < count && fits(end) && !NumberIn(name_of(end), before, after).empty()) ++end;
  return {end, *at};
}

template <typename NameOf>
Piece Write(size_t begin, const Group& group, const NameOf& name_of) {
  const std::string_view first = name_of(begin);
  if (group.end == begin + 1) return {std::string(first), "", ""};
  NumberList numbers;
  for (size_t i = begin; i < group.end; ++i) {
    const std::string_view name = name_of(i);
    numbers.Add(name.substr(group.number_at, EndOfDigits(name, group.number_at) - group.number_at));
  }
  return {std::string(first.substr(0, group.number_at)), numbers.Take(),
          std::string(first.substr(EndOfDigits(first, group.number_at)))};
}

std::vector<Piece> FirstBrackets(const std::vector<std::string>& hosts, HostListStyle style) {
  std::vector<Piece> pieces;
  const auto name_of = [&](size_t i) { return std::string_view(hosts[i]); };
  for (size_t begin = 0; begin < hosts.size();) {
    const bool slurm = style == HostListStyle::kSlurm;
    const auto fits = [&](size_t i) { return !slurm || i - begin < kMaxSlurmHosts; };
    Group group = GroupFrom(begin, hosts.size(), name_of, fits);
    const bool text_follows = EndOfDigits(hosts[begin], group.number_at) < hosts[begin].size();
    if (slurm && text_follows) group = {begin + 1};
    pieces.push_back(Write(begin, group, name_of));
    begin = group.end;
  }
  return pieces;
}

// Joins "rack1n[01-16]" and "rack2n[01-16]". Of two brackets the last turns faster, so the order stays.
std::string JoinPieces(const std::vector<Piece>& pieces) {
  std::string out;
  const auto name_of = [&](size_t i) { return std::string_view(pieces[i].left); };
  for (size_t begin = 0; begin < pieces.size();) {
    const Piece& first = pieces[begin];
    const auto fits = [&](size_t i) {
      return !first.bracket.empty() && i - begin < kMaxSlurmHosts && pieces[i].bracket == first.bracket &&
             pieces[i].right == first.right;
    };
    const Group group = GroupFrom(begin, pieces.size(), name_of, fits);
    const Piece left = Write(begin, group, name_of);
    if (!out.empty()) out += ',';
    out.append(left.left).append(left.bracket).append(left.right).append(first.bracket).append(first.right);
    begin = group.end;
  }
  return out;
}

}  // namespace

std::string CompressHostList(const std::vector<std::string>& hosts, HostListStyle style) {
  return JoinPieces(FirstBrackets(hosts, style));
}

}  // namespace overcap
