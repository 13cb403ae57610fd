// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_reader.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "snapshot/tar/pax_records.h"
#include "snapshot/tar/tar_header.h"
#include "snapshot/tar/tar_sparse.h"

namespace overcap {
namespace {

std::string Padded(std::string text) {
  text.resize((text.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return text;
}

// Puts the right checksum into the last header, after a test has changed it.
void Seal(std::string* block) {
  block->replace(kTarChecksum.offset, 8, "        ");
  int64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<uint8_t>((*block)[i]);
  char text[8];
  snprintf(text, sizeof text, "%06o", static_cast<unsigned>(sum));
  block->replace(kTarChecksum.offset, 7, text, 7);
}

std::string Entry(std::string_view name, char type, std::string_view data, std::string_view link = {}) {
  std::string out;
  AppendUstarHeader({.name = name,
                     .link = link,
                     .mode = 0640,
                     .uid = 7,
                     .gid = 8,
                     .size = static_cast<int64_t>(data.size()),
                     .mtime = 5,
                     .type = type},
                    &out);
  return out + Padded(std::string(data));
}

std::string Pax(const std::vector<std::pair<std::string, std::string>>& records, char type = 'x') {
  std::string body;
  for (const auto& [key, value] : records) AppendPaxRecord(key, value, &body);
  return Entry("PaxHeaders/x", type, body);
}

const std::string kEnd(1024, '\0');

struct ReadItem {
  TarItem item;
  std::string data;
};
struct Read {
  std::vector<ReadItem> items;
  std::string error;
};
Read ReadTar(const std::string& bytes) {
  TextSource source(bytes);
  TarReader reader(source, "x.tar");
  Read read;
  while (true) {
    ReadItem one;
    const auto more = reader.Next(&one.item);
    if (!more) {
      read.error = more.error().message;
      return read;
    }
    if (!*more) return read;
    while (true) {
      const auto piece = reader.Data();
      if (!piece) {
        read.error = piece.error().message;
        return read;
      }
      if (piece->empty()) break;
      one.data += *piece;
    }
    read.items.push_back(std::move(one));
  }
}

TEST(TarReader, AFileHasItsHeadersValuesAndData) {
  const Read read = ReadTar(Entry("a/b", '0', "hello") + kEnd);
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.items.size(), 1u);
  const SnapshotEntry& entry = read.items[0].item.entry;
  EXPECT_EQ(entry.path, "a/b");
  EXPECT_EQ(entry.mode, 0640u);
  EXPECT_EQ(entry.uid, 7u);
  EXPECT_EQ(entry.gid, 8u);
  EXPECT_EQ(entry.mtime_ns, 5'000'000'000);
  EXPECT_EQ(entry.size, 5);
  EXPECT_EQ(read.items[0].data, "hello");
}

TEST(TarReader, KindsAreTold) {
  const Read read = ReadTar(Entry("d/", '5', "") + Entry("l", '2', "", "to") + Entry("h", '1', "", "a") +
                            Entry("old/", '0', "") + Entry("p", '6', "") + Entry("c", '3', "") + kEnd);
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.items.size(), 6u);
  EXPECT_EQ(read.items[0].item.entry.type, SnapshotEntryType::kFolder);
  EXPECT_EQ(read.items[1].item.entry.type, SnapshotEntryType::kSymlink);
  EXPECT_EQ(read.items[1].item.entry.target, "to");
  EXPECT_EQ(read.items[1].item.entry.mode, 0777u);
  EXPECT_EQ(read.items[2].item.entry.type, SnapshotEntryType::kHardLink);
  EXPECT_EQ(read.items[2].item.entry.target, "a");
  EXPECT_EQ(read.items[3].item.entry.type, SnapshotEntryType::kFolder);
  EXPECT_EQ(read.items[4].item.special, "a pipe");
  EXPECT_EQ(read.items[5].item.special, "a device");
}

TEST(TarReader, PaxRecordsCountMoreThanTheHeader) {
  const Read read = ReadTar(Pax({{"comment", "all"}, {"gid", "70"}}, 'g') +
                            Pax({{"path", std::string(300, 'p')},
                                 {"mtime", "-1.5"},
                                 {"uid", "4000000000"},
                                 {"SCHILY.xattr.user.b", std::string("v\0\n", 3)},
                                 {"SCHILY.xattr.user.a", "w"}}) +
                            Entry("short", '0', "x") + Entry("next", '0', "") + kEnd);
  ASSERT_EQ(read.error, "");
  const SnapshotEntry& entry = read.items[0].item.entry;
  EXPECT_EQ(entry.path, std::string(300, 'p'));
  EXPECT_EQ(entry.mtime_ns, -1'500'000'000);
  EXPECT_EQ(entry.uid, 4'000'000'000u);
  EXPECT_EQ(entry.gid, 70u);
  ASSERT_EQ(entry.xattrs.size(), 2u);
  EXPECT_EQ(entry.xattrs[0].name, "user.a");
  EXPECT_EQ(entry.xattrs[1].value, std::string("v\0\n", 3));
  EXPECT_EQ(read.items[1].item.entry.path, "next");
  EXPECT_EQ(read.items[1].item.entry.gid, 70u);
  EXPECT_TRUE(read.items[1].item.entry.xattrs.empty());
}

TEST(TarReader, LongNamesOfGnuTarAreTaken) {
  const std::string name(5000, 'n'), link(200, 'k');
  const Read read = ReadTar(Entry("././@LongLink", 'L', name + '\0') +
                            Entry("././@LongLink", 'K', link + '\0') + Entry("n", '2', "", "k") + kEnd);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.items[0].item.entry.path, name);
  EXPECT_EQ(read.items[0].item.entry.target, link);
}

TEST(TarReader, APrefixGoesBeforeTheName) {
  std::string block = Entry("name", '0', "");
  block.replace(kTarPrefix.offset, 6, "far/of");
  Seal(&block);
  EXPECT_EQ(ReadTar(block + kEnd).items.at(0).item.entry.path, "far/of/name");
}

TEST(TarReader, ASparseFileOfFormatOneHasItsRuns) {
  const std::vector<TarRun> runs = {{512, 3}, {5000, 4}, {9000, 0}};
  const Read read = ReadTar(Pax({{"GNU.sparse.major", "1"},
                                 {"GNU.sparse.minor", "0"},
                                 {"GNU.sparse.name", "s"},
                                 {"GNU.sparse.realsize", "9000"}}) +
                            Entry("GNUSparseFile.0/s", '0', EncodeSparseMap(runs) + "abcdefg") + kEnd);
  ASSERT_EQ(read.error, "");
  const TarItem& item = read.items[0].item;
  EXPECT_TRUE(item.sparse);
  EXPECT_EQ(item.entry.path, "s");
  EXPECT_EQ(item.entry.size, 9000);
  EXPECT_EQ(item.runs, (std::vector<TarRun>{{512, 3}, {5000, 4}}));
  EXPECT_EQ(read.items[0].data, "abcdefg");
}

TEST(TarReader, SparseFilesOfTheOlderPaxFormatsAreTaken) {
  const Read list = ReadTar(Pax({{"GNU.sparse.size", "100"}, {"GNU.sparse.map", "10,2,50,1"}}) +
                            Entry("s", '0', "abc") + kEnd);
  ASSERT_EQ(list.error, "");
  EXPECT_EQ(list.items[0].item.runs, (std::vector<TarRun>{{10, 2}, {50, 1}}));
  const Read single = ReadTar(Pax({{"GNU.sparse.size", "100"},
                                   {"GNU.sparse.numblocks", "1"},
                                   {"GNU.sparse.offset", "10"},
                                   {"GNU.sparse.numbytes", "3"}}) +
                              Entry("s", '0', "abc") + kEnd);
  ASSERT_EQ(single.error, "");
  EXPECT_EQ(single.items[0].item.runs, (std::vector<TarRun>{{10, 3}}));
}

TEST(TarReader, ASparseFileWhoseMapIsWrongIsRefused) {
  for (const std::string_view map : {"10,2", "10,2,11,1", "99,3", "-1,3", "0,3,5", "x"}) {
    const Read read = ReadTar(Pax({{"GNU.sparse.size", "100"}, {"GNU.sparse.map", std::string(map)}}) +
                              Entry("s", '0', "abc") + kEnd);
    EXPECT_NE(read.error, "") << map;
  }
}

TEST(TarReader, AnOldSparseHeaderIsTaken) {
  std::string block = Entry("s", 'S', "abcde");
  const auto put = [&](size_t at, const char* text) { block.replace(at, strlen(text), text); };
  block.replace(257, 8, "ustar  \0", 8);
  put(386, "00000001000");
  put(398, "00000000005");
  put(483, "00000010000");
  Seal(&block);
  const Read read = ReadTar(block + kEnd);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.items[0].item.entry.size, 4096);
  EXPECT_EQ(read.items[0].item.runs, (std::vector<TarRun>{{512, 5}}));
}

TEST(TarReader, EveryCutIsFound) {
  const std::string tar =
      Pax({{"mtime", "5.5"}}) + Entry("a", '0', std::string(700, 'x')) + Entry("b", '0', "y");
  for (size_t size = 0; size < tar.size(); size += 97)
    EXPECT_NE(ReadTar(tar.substr(0, size)).error, "") << size;
  EXPECT_EQ(ReadTar(tar).error, "tar 'x.tar' is cut off: it has no end mark (after the entry 'b')");
  EXPECT_EQ(ReadTar(tar + std::string(512, '\0')).error, "");
}

TEST(TarReader, WhatIsNoTarIsSaid) {
  EXPECT_EQ(ReadTar("").error, "tar 'x.tar' is empty");
  EXPECT_EQ(ReadTar(std::string(600, 'x')).error, "tar 'x.tar' is no tar file");
  EXPECT_EQ(ReadTar(Entry("a", '0', "") + std::string(512, 'x')).error,
            "tar 'x.tar' is damaged: a header is wrong (after the entry 'a')");
  EXPECT_EQ(
      ReadTar(Entry("a", '0', "") + kEnd + Entry("b", '0', "")).error,
      "tar 'x.tar' goes on after its end: it is damaged, or several were put together (after the entry 'a')");
}

TEST(TarReader, SizesThatNoTarCanHaveNeedNoMemory) {
  std::string huge = Entry("a", '0', "");
  huge.replace(kTarSize.offset, 12, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
  Seal(&huge);
  EXPECT_EQ(ReadTar(huge + "x").error, "tar 'x.tar' is cut off (after the entry 'a')");
  std::string pax = Entry("a", 'x', "");
  pax.replace(kTarSize.offset, 11, "77777777777");
  Seal(&pax);
  EXPECT_EQ(ReadTar(pax).error, "tar 'x.tar' is damaged: a header is far too long");
}

TEST(TarNumber, OctalAndBase256AreRead) {
  EXPECT_EQ(ParseTarNumber("0000644\0"), 0644);
  EXPECT_EQ(ParseTarNumber("   644 "), 0644);
  EXPECT_EQ(ParseTarNumber(std::string_view("\0\0\0\0", 4)), 0);
  EXPECT_EQ(ParseTarNumber("   "), 0);
  EXPECT_EQ(ParseTarNumber("12x"), std::nullopt);
  EXPECT_EQ(ParseTarNumber("9"), std::nullopt);
  EXPECT_EQ(ParseTarNumber("777777777777777777777777"), std::nullopt);
  EXPECT_EQ(ParseTarNumber(std::string_view("\x80\0\0\0\0\0\0\0\0\0\1\2", 12)), 258);
  EXPECT_EQ(ParseTarNumber("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"), -2);
  EXPECT_EQ(ParseTarNumber("\x80\1\1\1\1\1\1\1\1\1\1\1"), std::nullopt);
}

}  // namespace
}  // namespace overcap
