// SPDX-License-Identifier: Apache-2.0
#include "snapshot/wildmatch.h"

#include <array>
#include <cstddef>
#include <optional>

namespace overcap {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

bool Between(unsigned char c, unsigned char low, unsigned char high) {
  return low <= c && c <= high;
}
bool IsDigit(unsigned char c) {
  return Between(c, '0', '9');
}
bool IsUpper(unsigned char c) {
  return Between(c, 'A', 'Z');
}
bool IsLower(unsigned char c) {
  return Between(c, 'a', 'z');
}
bool IsAlpha(unsigned char c) {
  return IsUpper(c) || IsLower(c);
}
bool IsAlnum(unsigned char c) {
  return IsAlpha(c) || IsDigit(c);
}
bool IsBlank(unsigned char c) {
  return c == ' ' || c == '\t';
}
bool IsCntrl(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}
bool IsGraph(unsigned char c) {
  return Between(c, 0x21, 0x7e);
}
bool IsPrint(unsigned char c) {
  return Between(c, 0x20, 0x7e);
}
bool IsPunct(unsigned char c) {
  return IsGraph(c) && !IsAlnum(c);
}
bool IsSpace(unsigned char c) {
  return c == ' ' || Between(c, '\t', '\r');
}
bool IsXdigit(unsigned char c) {
  return IsDigit(c) || Between(c, 'A', 'F') || Between(c, 'a', 'f');
}

// Names in [:name:]; the C locale's, so that every machine captures the same.
struct NamedClass {
  std::string_view name;
  bool (*contains)(unsigned char);
};
constexpr std::array<NamedClass, 12> kNamedClasses = {{{"alnum", IsAlnum},
                                                       {"alpha", IsAlpha},
                                                       {"blank", IsBlank},
                                                       {"cntrl", IsCntrl},
                                                       {"digit", IsDigit},
                                                       {"graph", IsGraph},
                                                       {"lower", IsLower},
                                                       {"print", IsPrint},
                                                       {"punct", IsPunct},
                                                       {"space", IsSpace},
                                                       {"upper", IsUpper},
                                                       {"xdigit", IsXdigit}}};

const NamedClass* FindNamedClass(std::string_view name) {
  for (const NamedClass& named : kNamedClasses) {
    if (named.name == name) return &named;
  }
  return nullptr;
}

// Reads one bracket expression, character by character, and says whether it contains `c`.
class Bracket {
 public:
  // `at` is the position after '['.
  Bracket(std::string_view pattern, size_t at, unsigned char c) : pattern_(pattern), at_(at), c_(c) {}

  // The position after ']', or nullopt when the expression is not well formed. Contains() holds after that.
  std::optional<size_t> Read() {
    negated_ = at_ < pattern_.size() && (pattern_[at_] == '!' || pattern_[at_] == '^');
    if (negated_) ++at_;
    for (bool first = true; first || At(at_) != ']'; first = false) {
      if (!ReadItem()) return std::nullopt;
      if (at_ >= pattern_.size()) return std::nullopt;
    }
    return at_ + 1;
  }

  bool Contains() const { return found_ != negated_; }

 private:
  int At(size_t i) const { return i < pattern_.size() ? static_cast<unsigned char>(pattern_[i]) : -1; }

  bool ReadItem() {
    if (At(at_) == '[' && At(at_ + 1) == ':') {
      const size_t close = pattern_.find(']', at_ + 2);
      if (close == std::string_view::npos) return false;
      if (close > at_ + 2 && pattern_[close - 1] == ':') return ReadNamed(close);
    }
    const bool range = At(at_) == '-' && previous_ >= 0 && At(at_ + 1) >= 0 && At(at_ + 1) != ']';
    if (range) ++at_;
    if (At(at_) == '\\') ++at_;
    if (At(at_) < 0) return false;
    const int high = At(at_++);
    if (range ? Between(c_, static_cast<unsigned char>(previous_), static_cast<unsigned char>(high))
              : c_ == high) {
      found_ = true;
    }
    previous_ = range ? -1 : high;
    return true;
  }

  bool ReadNamed(size_t close) {
    const NamedClass* named = FindNamedClass(pattern_.substr(at_ + 2, close - 1 - (at_ + 2)));
    if (named == nullptr) return false;
    if (named->contains(c_)) found_ = true;
    previous_ = -1;
    at_ = close + 1;
    return true;
  }

  std::string_view pattern_;
  size_t at_;
  unsigned char c_;
  int previous_ = -1;  // what a following '-' begins its range with; -1 when nothing can
  bool negated_ = false;
  bool found_ = false;
};

// Goes through pattern and path side by side. On a mismatch it goes back to the last `*`, which then takes
// one character more, or when that would cross a '/', to the last `**`. No earlier star can help: the text
// that a star has to cover ends where the next one begins.
class Matcher {
 public:
  Matcher(std::string_view pattern, std::string_view path) : pattern_(pattern), path_(path) {}

  bool Run() {
    while (p_ < pattern_.size() || t_ < path_.size()) {
      if (!Step() && !GoBack()) return false;
    }
    return true;
  }

 private:
  bool Step() {
    if (p_ == pattern_.size()) return false;
    if (pattern_[p_] == '*') return TakeStars();
    if (t_ == path_.size()) return false;
    switch (pattern_[p_]) {
      case '?':
        return path_[t_] != '/' && Advance(p_ + 1);
      case '[': {
        Bracket bracket(pattern_, p_ + 1, static_cast<unsigned char>(path_[t_]));
        const std::optional<size_t> after = bracket.Read();
        return after && bracket.Contains() && path_[t_] != '/' && Advance(*after);
      }
      case '\\':
        return p_ + 1 < pattern_.size() && pattern_[p_ + 1] == path_[t_] && Advance(p_ + 2);
      default:
        return pattern_[p_] == path_[t_] && Advance(p_ + 1);
    }
  }

  bool Advance(size_t p) {
    p_ = p;
    ++t_;
    return true;
  }

  bool TakeStars() {
    const size_t begin = p_;
    while (p_ < pattern_.size() && pattern_[p_] == '*') ++p_;
    const std::string_view rest = pattern_.substr(p_);
    const bool deep = p_ - begin >= 2 && (begin == 0 || pattern_[begin - 1] == '/') &&
                      (rest.empty() || rest[0] == '/' || rest.substr(0, 2) == "\\/");
    if (!deep) {
      star_p_ = p_;
      star_t_ = t_;
      return true;
    }
    whole_folders_ = !rest.empty() && rest[0] == '/';
    if (whole_folders_) ++p_;  // "**/" matches nothing, or up to and with any slash
    deep_p_ = p_;
    deep_t_ = t_;
    star_p_ = kNone;
    return true;
  }

  bool GoBack() {
    if (star_p_ != kNone && star_t_ < path_.size() && path_[star_t_] != '/') {
      p_ = star_p_;
      t_ = ++star_t_;
      return true;
    }
    star_p_ = kNone;
    if (deep_p_ == kNone) return false;
    if (whole_folders_) deep_t_ = path_.find('/', deep_t_);
    if (deep_t_ == std::string_view::npos || deep_t_ >= path_.size()) return false;
    p_ = deep_p_;
    t_ = ++deep_t_;
    return true;
  }

  std::string_view pattern_;
  std::string_view path_;
  size_t p_ = 0;
  size_t t_ = 0;
  size_t star_p_ = kNone;  // after the last `*`, and where in the path its match ends
  size_t star_t_ = 0;
  size_t deep_p_ = kNone;  // the same for the last `**`
  size_t deep_t_ = 0;
  bool whole_folders_ = false;
};

}  // namespace

bool WildMatch(std::string_view pattern, std::string_view path) {
  return Matcher(pattern, path).Run();
}

}  // namespace overcap
