// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "snapshot/tar/pax_records.h"
#include "snapshot/tar/posix_acl_text.h"
#include "snapshot/tar/tar_reader.h"

namespace overcap {
namespace {

struct Stored {
  TarItem item;
  std::string data;
};

std::string WriteTar(const std::vector<Stored>& all) {
  TextSink sink;
  TarWriter writer(sink);
  for (const Stored& one : all) {
    EXPECT_TRUE(writer.Begin(one.item));
    EXPECT_TRUE(writer.Data(one.data));
  }
  EXPECT_TRUE(writer.Finish());
  return sink.text;
}

std::vector<Stored> ReadTar(const std::string& bytes) {
  TextSource source(bytes);
  TarReader reader(source, "t");
  std::vector<Stored> all;
  while (true) {
    Stored one;
    const auto more = reader.Next(&one.item);
    EXPECT_TRUE(more) << more.error().message;
    if (!more || !*more) return all;
    while (true) {
      const auto piece = reader.Data();
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) break;
      one.data += *piece;
    }
    all.push_back(std::move(one));
  }
}

TarItem File(std::string path, int64_t size) {
  TarItem item;
  item.entry.path = std::move(path);
  item.entry.mode = 0644;
  item.entry.size = size;
  return item;
}

TEST(TarWriter, WhatIsWrittenIsRead) {
  std::vector<Stored> all;
  TarItem folder;
  folder.entry.type = SnapshotEntryType::kFolder;
  folder.entry.mode = 01755;
  folder.entry.mtime_ns = -3;
  all.push_back({folder, ""});
  TarItem file = File(std::string(400, 'p') + "\xff/x", 3);
  file.entry.uid = 4'000'000'000;
  file.entry.gid = 3'000'000'000;
  file.entry.mtime_ns = 1'700'000'000'123'456'789;
  file.entry.xattrs = {{"user.a", std::string("\0=\n", 3)}, {"user.b", ""}};
  all.push_back({file, "abc"});
  TarItem link;
  link.entry.path = "l";
  link.entry.type = SnapshotEntryType::kSymlink;
  link.entry.mode = 0777;
  link.entry.target = std::string(3000, 't');
  all.push_back({link, ""});
  TarItem sparse = File("s\xfe", 10'000);
  sparse.sparse = true;
  sparse.runs = {{0, 2}, {9000, 3}};
  all.push_back({sparse, "ABCDE"});
  const std::string tar = WriteTar(all);
  EXPECT_EQ(tar.size() % 10'240, 0u);
  std::vector<Stored> read = ReadTar(tar);
  ASSERT_EQ(read.size(), all.size());
  all[0].item.entry.path = "./";
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(read[i].item, all[i].item) << i;
    EXPECT_EQ(read[i].data, all[i].data) << i;
  }
}

TEST(TarWriter, DataThatDoesNotFitTheSizeIsABug) {
  TextSink sink;
  TarWriter writer(sink);
  ASSERT_TRUE(writer.Begin(File("a", 2)));
  EXPECT_FALSE(writer.Data("abc"));
  ASSERT_TRUE(writer.Data("a"));
  EXPECT_FALSE(writer.Finish());
}

RC_GTEST_PROP(TarWriter, AnyEntryComesBack,
              (const std::string& name, uint32_t uid, int64_t mtime_us, uint16_t mode)) {
  TarItem item = File("p", 0);
  for (const char c : name) {
    if (c != '\0' && c != '/') item.entry.path.push_back(c);
  }
  item.entry.uid = uid;
  item.entry.mtime_ns = mtime_us % 9'000'000'000'000'000 * 1000 + 7;
  item.entry.mode = mode & 07777;
  const auto read = ReadTar(WriteTar({{item, ""}}));
  RC_ASSERT(read.size() == 1u);
  RC_ASSERT(read[0].item == item);
}

TEST(PaxTime, NanosecondsAndSignsSurvive) {
  for (const int64_t ns :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1'500'000'000}, int64_t{1'700'000'000'000'000'001}}) {
    EXPECT_EQ(ParsePaxTime(FormatPaxTime(ns)), ns);
  }
  EXPECT_EQ(ParsePaxTime("1.12345678999"), 1'123'456'789);
  EXPECT_EQ(ParsePaxTime("1."), 1'000'000'000);
  for (const char* bad : {"", "-", ".5", "1x", "1.x", "--1", "1e5"})
    EXPECT_EQ(ParsePaxTime(bad), std::nullopt) << bad;
}

TEST(PaxRecords, LengthsCountTheirOwnDigits) {
  std::string text;
  AppendPaxRecord("k", std::string(93, 'v'), &text);
  EXPECT_EQ(text.substr(0, 4), "99 k");
  text.clear();
  AppendPaxRecord("k", std::string(94, 'v'), &text);
  EXPECT_EQ(text.substr(0, 5), "101 k");
  EXPECT_TRUE(ParsePaxRecords(text));
  for (const char* bad : {"5", "5 a=b", "6 a=b\nx", "99 a=b\n", "0 a=b\n", "4 ab\n", "-6 a=b\n", "4 =\n"}) {
    EXPECT_FALSE(ParsePaxRecords(bad)) << bad;
  }
}

TEST(AclText, TextAndXattrAreTheSame) {
  const auto nobody = [](std::string_view, bool) { return std::optional<uint32_t>(); };
  const auto ann = [](std::string_view name, bool) {
    return name == "ann" ? std::optional<uint32_t>(70) : std::nullopt;
  };
  const std::string text = "user::rw-,user:1000:r--,group::r--,mask::r--,other::---";
  const auto value = AclTextToXattr(text, nobody);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), 4u + 5 * 8);
  EXPECT_EQ(AclXattrToText(*value), text);
  EXPECT_EQ(AclTextToXattr("other::---\nmask::r--\ngroup::r--\nuser:x:r--:1000\nu::rw- # me\n", nobody),
            value);
  EXPECT_EQ(AclXattrToText(*AclTextToXattr("user:ann:rwx", ann)), "user:70:rwx");
  EXPECT_EQ(AclTextToXattr("user:bob:rwx", ann), std::nullopt);
  for (const char* bad : {"", "user", "user:", "x::r--", "user::q", ":::", "m"}) {
    EXPECT_EQ(AclTextToXattr(bad, nobody), std::nullopt) << bad;
  }
  EXPECT_EQ(AclXattrToText("\2\0\0\0xx"), std::nullopt);
}

}  // namespace
}  // namespace overcap
