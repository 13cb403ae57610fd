// SPDX-License-Identifier: Apache-2.0
// The XML that object stores answer with: elements and text. Attributes are read over; document types, which
// could make little into much, are refused. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct XmlElement {
  std::string name;  // as written, a prefix ("x:") included
  std::string text;  // all of it, without that of the children
  std::vector<XmlElement> children;

  // The first child of this name, or null.
  const XmlElement* Child(std::string_view child) const;
  // Its text; "" when there is none.
  std::string_view TextOf(std::string_view child) const;
};

// The one element that the text holds. kCorrupt says what is wrong. Memory stays within some dozen times the
// size of the text, and depth within 32.
Result<XmlElement> ParseXml(std::string_view text);

// `text` as the content of an element.
std::string XmlEscape(std::string_view text);

}  // namespace overcap
