// SPDX-License-Identifier: Apache-2.0
// Reads the small JSON objects of a repository, whatever bytes they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace overcap {

class JsonMembers {
 public:
  // The object that `text` is. kCorrupt, naming `what`, unless it is one of this `format`; kConflict when its
  // version is higher.
  static Result<JsonMembers> Parse(std::string_view text, std::string_view format, int64_t version,
                                   std::string_view what);

  // False when the member is missing or of another type; numbers are whole and not negative.
  bool Read(const char* name, int64_t* value) const;
  bool Read(const char* name, std::string* value) const;
  // True also when it is missing: then `value` stays.
  bool ReadIfThere(const char* name, int64_t* value) const { return !Has(name) || Read(name, value); }
  bool ReadIfThere(const char* name, std::string* value) const { return !Has(name) || Read(name, value); }
  bool Has(const char* name) const;
  bool IsNull(const char* name) const;  // there and null
  // The object of that name; an empty one when there is none.
  JsonMembers Below(const char* name) const;

 private:
  explicit JsonMembers(std::shared_ptr<const nlohmann::json> json) : json_(std::move(json)) {}

  std::shared_ptr<const nlohmann::json> json_;
};

}  // namespace overcap
