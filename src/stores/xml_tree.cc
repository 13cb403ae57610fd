// SPDX-License-Identifier: Apache-2.0
#include "stores/xml_tree.h"

#include <cstdint>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kDeepest = 32;

tl::unexpected<Error> Odd(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, StrCat("this is not XML as it should be: ", what));
}

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | code >> 6));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | code >> 12));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 63)));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  } else {
    out->push_back(static_cast<char>(0xf0 | code >> 18));
    out->push_back(static_cast<char>(0x80 | (code >> 12 & 63)));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 63)));
    out->push_back(static_cast<char>(0x80 | (code & 63)));
  }
}

// "#10" or "#xA" as a character; false when it is none.
bool AppendNumbered(std::string_view digits, std::string* out) {
  const bool hex = digits.starts_with('x');
  if (hex) digits.remove_prefix(1);
  if (digits.empty() || digits.size() > 7) return false;
  uint32_t code = 0;
  for (const char c : digits) {
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    if (value >= (hex ? 16 : 10)) return false;
    code = code * (hex ? 16 : 10) + static_cast<uint32_t>(value);
  }
  if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  AppendUtf8(code, out);
  return true;
}

class XmlParser {
 public:
  explicit XmlParser(std::string_view text) : left_(text) {}

  Result<XmlElement> Parse() {
    if (left_.starts_with("\xef\xbb\xbf")) left_.remove_prefix(3);
    OC_TRY_VOID(SkipOutside());
    XmlElement root;
    OC_TRY_VOID(TakeElement(&root, 0));
    OC_TRY_VOID(SkipOutside());
    if (!left_.empty()) return Odd("something stands behind its end");
    return root;
  }

 private:
  void SkipSpace() {
    while (!left_.empty() && IsSpace(left_[0])) left_.remove_prefix(1);
  }

  Result<void> SkipTo(std::string_view end) {
    const size_t at = left_.find(end);
    if (at == left_.npos) return Odd("it ends too early");
    left_.remove_prefix(at + end.size());
    return {};
  }

  // Blanks, comments and <?...?> before and behind the element.
  Result<void> SkipOutside() {
    while (true) {
      SkipSpace();
      if (left_.starts_with("<?")) {
        OC_TRY_VOID(SkipTo("?>"));
      } else if (left_.starts_with("<!--")) {
        left_.remove_prefix(4);
        OC_TRY_VOID(SkipTo("-->"));
      } else {
        return {};
      }
    }
  }

  Result<std::string_view> TakeName() {
    size_t size = 0;
    while (size < left_.size() && IsNameByte(left_[size])) ++size;
    if (size == 0) return Odd("an element has no name");
    const std::string_view name = left_.substr(0, size);
    left_.remove_prefix(size);
    return name;
  }

  // Up to '>' or '/>'; true for the latter.
  Result<bool> SkipAttributes() {
    while (true) {
      SkipSpace();
      if (left_.starts_with("/>")) {
        left_.remove_prefix(2);
        return true;
      }
      if (left_.starts_with('>')) {
        left_.remove_prefix(1);
        return false;
      }
      OC_TRY_VOID(TakeName());
      SkipSpace();
      if (!left_.starts_with('=')) return Odd("an attribute has no value");
      left_.remove_prefix(1);
      SkipSpace();
      if (left_.empty() || (left_[0] != '"' && left_[0] != '\'')) return Odd("an attribute has no value");
      const char quote = left_[0];
      left_.remove_prefix(1);
      OC_TRY_VOID(SkipTo(std::string_view(&quote, 1)));
    }
  }

  Result<void> TakeElement(XmlElement* out, int depth) {
    if (depth > kDeepest) return Odd("it is nested too deeply");
    if (!left_.starts_with('<')) return Odd("it does not begin with an element");
    left_.remove_prefix(1);
    OC_TRY(name, TakeName());
    out->name = name;
    OC_TRY(empty, SkipAttributes());
    return empty ? Result<void>{} : TakeContent(out, depth);
  }

  Result<void> TakeContent(XmlElement* out, int depth) {
    while (true) {
      OC_TRY_VOID(TakeText(&out->text));
      if (left_.starts_with("</")) return TakeEnd(out->name);
      if (left_.starts_with("<!--")) {
        OC_TRY_VOID(SkipTo("-->"));
      } else if (left_.starts_with("<![CDATA[")) {
        left_.remove_prefix(9);
        const std::string_view before = left_;
        OC_TRY_VOID(SkipTo("]]>"));
        out->text.append(before.substr(0, before.size() - left_.size() - 3));
      } else {
        OC_TRY_VOID(TakeElement(&out->children.emplace_back(), depth + 1));
      }
    }
  }

  Result<void> TakeEnd(const std::string& begun) {
    left_.remove_prefix(2);
    OC_TRY(name, TakeName());
    SkipSpace();
    if (name != begun || !left_.starts_with('>')) return Odd("an element is not closed");
    left_.remove_prefix(1);
    return {};
  }

  Result<void> TakeText(std::string* out) {
    while (true) {
      const size_t at = left_.find_first_of("<&");
      if (at == left_.npos) return Odd("it ends too early");
      out->append(left_.substr(0, at));
      left_.remove_prefix(at);
      if (left_[0] == '<') return {};
      OC_TRY_VOID(TakeEntity(out));
    }
  }

  Result<void> TakeEntity(std::string* out) {
    const size_t end = left_.substr(0, 12).find(';');
    if (end == left_.npos) return Odd("a '&' has no ';'");
    const std::string_view name = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    static constexpr std::pair<std::string_view, char> kNamed[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [word, character] : kNamed) {
      if (name != word) continue;
      out->push_back(character);
      return {};
    }
    if (name.starts_with('#') && AppendNumbered(name.substr(1), out)) return {};
    return Odd("a '&' begins nothing that is known");
  }

  std::string_view left_;
};

}  // namespace

const XmlElement* XmlElement::Child(std::string_view child) const {
  for (const XmlElement& each : children)
    if (each.name == child) return &each;
  return nullptr;
}

std::string_view XmlElement::TextOf(std::string_view child) const {
  const XmlElement* found = Child(child);
  return found != nullptr ? std::string_view(found->text) : std::string_view();
}

Result<XmlElement> ParseXml(std::string_view text) {
  return XmlParser(text).Parse();
}

std::string XmlEscape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out.push_back(c);
  }
  return out;
}

}  // namespace overcap
