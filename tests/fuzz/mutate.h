// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

// Makes inputs that are nearly right out of good ones. The same seed makes the same inputs on every machine.
class Mutator {
 public:
  // `words` are pieces that mean something to the parser.
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words, uint64_t seed)
      : corpus_(std::move(corpus)), words_(std::move(words)), random_(seed) {}

  // For formats in which nearly every byte counts: most inputs have one change.
  Mutator& Gently() {
    gentle_ = true;
    return *this;
  }

  std::string Next() {
    std::string text = AnyOf(kept_.empty() || Below(2) == 0 ? corpus_ : kept_);
    const bool one = gentle_ && Below(8) != 0;
    for (size_t changes = one ? 1 : 1 + Below(4); changes > 0; --changes) Change(&text);
    return text;
  }

  // An input that was understood is a start for more.
  void Keep(const std::string& text) {
    if (text.size() > kLongestKept) return;
    if (kept_.size() < kMostKept) {
      kept_.push_back(text);
    } else {
      kept_[Below(kMostKept)] = text;
    }
  }

 private:
  static constexpr size_t kLongestKept = 500, kMostKept = 200;

  size_t Below(size_t limit) { return random_() % limit; }
  const std::string& AnyOf(const std::vector<std::string>& list) { return list[Below(list.size())]; }
  size_t Place(const std::string& text) { return Below(text.size() + 1); }

  void Change(std::string* text) {
    switch (Below(8)) {
      case 0:
        text->insert(Place(*text), AnyOf(words_));
        break;
      case 1:
        text->insert(Place(*text), 1, static_cast<char>(Below(256)));
        break;
      case 2:
        text->erase(Place(*text), 1 + Below(5));
        break;
      case 3:
        if (!text->empty()) (*text)[Below(text->size())] = static_cast<char>(Below(256));
        break;
      case 4:
        text->resize(Place(*text));
        break;
      case 5:
        text->insert(Place(*text), text->substr(Place(*text), 1 + Below(20)));
        break;
      case 6:
        text->insert(Place(*text), AnyOf(corpus_));
        break;
      default:
        if (!text->empty()) (*text)[Below(text->size())] = AnyOf(words_)[0];
    }
  }

  const std::vector<std::string> corpus_, words_;
  std::vector<std::string> kept_;
  bool gentle_ = false;
  std::mt19937_64 random_;
};

}  // namespace overcap
