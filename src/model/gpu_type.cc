// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_type.h"

#include <cctype>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kMaxDepth = 100;

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' || c == '+';
}

// Lower case, with every run of other characters than letters, digits, '.' and '+' as one '_'.
std::string Folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '+') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  if (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

// Whether `name` is `type` or a run of whole words of it: "a100" and "sxm4" are in "a100_sxm4_80gb".
bool HasWords(std::string_view type, std::string_view name) {
  return StrCat('_', type, '_').find(StrCat('_', name, '_')) != std::string::npos;
}

// any := all {('|' | ',') all};  all := one {'&' one};  one := '!' one | '(' any ')' | name
class Parser {
 public:
  Parser(std::string_view text, std::string_view type) : text_(text), type_(Folded(type)) {}

  Result<bool> Parse() {
    OC_TRY(matches, Any());
    if (at_ < text_.size()) return Bad(StrCat("'", text_[at_], "' is not expected there"));
    return matches;
  }

 private:
  Result<bool> Any() {
    OC_TRY(matches, All());
    while (Accept('|') || Accept(',')) {
      OC_TRY(right, All());
      matches = matches || right;
    }
    return matches;
  }

  Result<bool> All() {
    OC_TRY(matches, One());
    while (Accept('&')) {
      OC_TRY(right, One());
      matches = matches && right;
    }
    return matches;
  }

  Result<bool> One() {
    if (++depth_ > kMaxDepth) return Bad("it is nested too deep");
    OC_TRY(matches, Accept('!') ? Not() : Accept('(') ? Inner() : Name());
    --depth_;
    return matches;
  }

  Result<bool> Not() {
    OC_TRY(matches, One());
    return !matches;
  }

  Result<bool> Inner() {
    OC_TRY(matches, Any());
    if (!Accept(')')) return Bad("a ')' is missing");
    return matches;
  }

  Result<bool> Name() {
    SkipBlanks();
    const size_t begin = at_;
    while (at_ < text_.size() && (IsNameCharacter(text_[at_]) || text_[at_] == ' ')) ++at_;
    const std::string name = Folded(text_.substr(begin, at_ - begin));
    if (name.empty()) return Bad("a GPU type is missing");
    return HasWords(type_, name);
  }

  void SkipBlanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool Accept(char c) {
    SkipBlanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  tl::unexpected<Error> Bad(std::string_view why) const {
    return Fail(ErrorCode::kUsage,
                StrCat("GPU type '", ToUtf8(text_), "', column ", at_ + 1, ": ", ToUtf8(why)),
                "write it like 'a40', 'a40|rtx_6000' or '!titan_x'");
  }

  std::string_view text_;
  std::string type_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<bool> GpuTypeMatches(std::string_view expression, std::string_view type) {
  if (Trim(expression).empty()) return true;
  return Parser(expression, type).Parse();
}

Result<void> CheckGpuTypeExpression(std::string_view expression) {
  OC_TRY_VOID(GpuTypeMatches(expression, ""));
  return {};
}

std::string NormalGpuType(std::string_view name) {
  std::string type = Folded(name);
  for (const std::string_view maker :
       {"nvidia_", "geforce_", "tesla_", "quadro_", "amd_", "instinct_", "intel_r_", "data_center_gpu_"}) {
    if (type.starts_with(maker)) type.erase(0, maker.size());
  }
  return type;
}

}  // namespace overcap
