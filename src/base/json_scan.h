// SPDX-License-Identifier: Apache-2.0
// Cuts JSON text that we wrote ourselves into pieces, without building a tree: long lists are read at the
// speed of memory. Views point into the text. Text that is no JSON gives fewer pieces, never a read outside
// of it; check what the pieces hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

// The values of an array, as text; empty when it is none.
std::vector<std::string_view> JsonElements(std::string_view array);
// The same into a vector that is used again and again.
void JsonElements(std::string_view array, std::vector<std::string_view>* elements);

// The value of an object's own member, as text; "" when it has none. `key` needs no escapes.
std::string_view JsonMember(std::string_view object, std::string_view key);

// The content of a JSON string; nullopt for any other value.
std::optional<std::string> JsonString(std::string_view value);

}  // namespace overcap
