// SPDX-License-Identifier: Apache-2.0
// Objects of writers/ and condemned/: whatever JSON they hold, they are read or refused.
#include "inputs.h"
#include "snapshot/repository/presence_record.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {"null",    "true", "-1",   "1e999",     "18446744073709551616",
                                         "[",       "{",    "\"\"", "\"packs\"", "\"knows\"",
                                         "\\u0000", "\xff"};

std::string JsonOf(const std::string& object) {
  return object.substr(0, object.find('\n'));
}

std::string WithHash(const std::string& json) {
  return json + "\n" + Sha256Of(json).Hex() + "\n";
}

TEST(PresenceFuzz, WritersAreReadOrRefused) {
  WriterRecord record;
  record.process = {"node", 1, "boot", "pid:[1]", 2};
  record.knows = {std::string(32, 'a')};
  ForEachInput(Mutator({JsonOf(EncodeWriterRecord(record))}, kWords, 1).Gently(),
               [](const std::string& json) {
                 const auto read = DecodeWriterRecord(WithHash(json), "writers/x");
                 if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
                 EXPECT_EQ(DecodeWriterRecord(EncodeWriterRecord(*read), "writers/x"), *read);
                 return true;
               });
}

TEST(PresenceFuzz, CondemnedPacksAreReadOrRefused) {
  const std::string sample = EncodeCondemnedRecord({{Sha256Of("a"), Sha256Of("b")}, 7});
  ForEachInput(Mutator({JsonOf(sample)}, kWords, 2).Gently(), [](const std::string& json) {
    const auto read = DecodeCondemnedRecord(WithHash(json), "condemned/x");
    if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
    EXPECT_EQ(DecodeCondemnedRecord(EncodeCondemnedRecord(*read), "condemned/x"), *read);
    return true;
  });
}

}  // namespace
}  // namespace overcap
