// SPDX-License-Identifier: Apache-2.0
// Tars that others made, changed at random: they are read or refused with one line, with little memory.
#include <gtest/gtest.h>

#include "inputs.h"
#include "snapshot/tar/pax_records.h"
#include "snapshot/tar/posix_acl_text.h"
#include "snapshot/tar/tar_codec.h"
#include "snapshot/tar/tar_header.h"
#include "snapshot/tar/tar_reader.h"
#include "snapshot/tar/tar_sparse.h"
#include "snapshot/tar/tar_tree.h"
#include "snapshot/tar/tar_writer.h"

namespace overcap {
namespace {

std::string SmallTar(int kind) {
  TextSink sink;
  TarWriter writer(sink);
  TarItem item;
  item.entry.path = kind == 0 ? "a" : std::string(120, 'n');
  item.entry.mode = 0644;
  item.entry.mtime_ns = 1'700'000'000'000'000'001;
  item.entry.size = 5;
  std::string data = "hello";
  if (kind == 1) item.entry.xattrs = {{"user.a", "b"}};
  if (kind == 2) {
    item.sparse = true;
    item.runs = {{512, 2}, {4096, 3}};
    item.entry.size = 9000;
  }
  EXPECT_TRUE(writer.Begin(item));
  EXPECT_TRUE(writer.Data(data));
  TarItem link;
  link.entry.path = "l";
  link.entry.type = kind == 0 ? SnapshotEntryType::kSymlink : SnapshotEntryType::kHardLink;
  link.entry.target = "a";
  EXPECT_TRUE(writer.Begin(link));
  return sink.text + std::string(1024, '\0');
}

// Checksums would hide everything behind them: all headers get the right one.
void MendChecksums(std::string* tar) {
  for (size_t at = 0; at + kTarBlock <= tar->size(); at += kTarBlock) {
    const std::string_view magic = std::string_view(*tar).substr(at + kTarMagic.offset, 5);
    if (magic != "ustar") continue;
    tar->replace(at + kTarChecksum.offset, 8, "        ");
    int sum = 0;
    for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<uint8_t>((*tar)[at + i]);
    char text[8];
    snprintf(text, sizeof text, "%06o", static_cast<unsigned>(sum) & 0777777u);
    tar->replace(at + kTarChecksum.offset, 7, text, 7);
  }
}

bool ReadAll(const std::string& tar) {
  TextSource source(tar);
  TarReader reader(source, "f.tar");
  TarTree tree({0, 0, 0});
  TarItem item;
  while (true) {
    const auto more = reader.Next(&item);
    if (!more) return ExpectOneLine(more.error(), ErrorCode::kCorrupt);
    if (!*more) break;
    int64_t stored = 0, end = 0, told = 0;
    for (const TarRun& run : item.runs) {
      EXPECT_GE(run.offset, end);
      EXPECT_GT(run.length, 0);
      end = run.offset + run.length;
      told += run.length;
    }
    EXPECT_LE(end, item.entry.size);
    while (true) {
      const auto piece = reader.Data();
      if (!piece) return ExpectOneLine(piece.error(), ErrorCode::kCorrupt);
      if (piece->empty()) break;
      stored += static_cast<int64_t>(piece->size());
    }
    EXPECT_EQ(stored, item.sparse ? told : stored);
    const auto clean = CleanTarPath(item.entry.path, 0, item.entry.type == SnapshotEntryType::kFolder);
    if (!clean) return ExpectOneLine(clean.error(), ErrorCode::kUsage);
    if (clean->gone) continue;
    item.entry.path = clean->path;
    tree.Add(item.entry);
  }
  if (const auto resolved = tree.Resolve(); !resolved)
    return ExpectOneLine(resolved.error(), ErrorCode::kCorrupt);
  const auto visited = tree.Visit([](const SnapshotEntry&) { return Result<void>(); });
  return visited || ExpectOneLine(visited.error(), ErrorCode::kCorrupt);
}

TEST(TarFuzz, ATarIsReadOrRefused) {
  const std::vector<std::string> words = {
      "ustar", "0000",  "77777777777",         "\x80",  "\xff", "x",   "g",  "L",  "K", "S", "1",
      "2",     "5",     "GNU.sparse.",         "path=", "/",    "../", "\n", "30", "=", ",", "M",
      "99",    "size=", "18446744073709551616"};
  ForEachInput(
      Mutator({SmallTar(0), SmallTar(1), SmallTar(2)}, words, 11),
      [](const std::string& input) {
        std::string tar = input;
        // Insertions move the blocks; what comes behind is then read as data or refused.
        MendChecksums(&tar);
        return ReadAll(tar);
      },
      kFewUnderstood);
}

TEST(TarFuzz, PaxRecordsAreReadOrRefused) {
  std::string good;
  AppendPaxRecord("path", "a/b", &good);
  AppendPaxRecord("mtime", "1.5", &good);
  AppendPaxRecord("GNU.sparse.map", "0,1,5,2", &good);
  AppendPaxRecord("SCHILY.acl.access", "user::rw-,group::r--", &good);
  ForEachInput(
      Mutator({good, "6 a=b\n"}, {"6 ", "=", "\n", "99999999999", "-", "GNU.sparse.offset", "\0"}, 12),
      [](const std::string& input) {
        PaxOverrides overrides;
        const auto applied = ApplyPaxRecords(input, &overrides);
        if (!applied) return ExpectOneLine(applied.error(), ErrorCode::kCorrupt);
        for (const TarRun& run : overrides.sparse_runs) EXPECT_GE(run.offset, 0);
        (void)XattrsOf(overrides);
        return true;
      });
}

TEST(TarFuzz, AclsAreReadOrRefused) {
  const auto nobody = [](std::string_view, bool) { return std::optional<uint32_t>(); };
  ForEachInput(Mutator({"user::rw-,user:7:r--,group::r--,mask::r--,other::---", "u::rwx\ng::r-x\no::--x\n"},
                       {"user", ":", ",", "4294967295", "-1", "rwx", "#", "\n", "mask:"}, 13),
               [&](const std::string& input) {
                 const auto value = AclTextToXattr(input, nobody);
                 if (!value) return false;
                 const auto text = AclXattrToText(*value);
                 EXPECT_TRUE(text);
                 EXPECT_EQ(AclTextToXattr(*text, nobody), value);
                 return true;
               });
}

TEST(TarFuzz, CompressedTarsAreReadOrRefused) {
  std::vector<std::string> corpus;
  for (const TarCodec codec : {TarCodec::kGzip, TarCodec::kLz4, TarCodec::kZstd}) {
    TextSink out;
    auto sink = CompressInto(out, codec, 1);
    ASSERT_TRUE(sink && (*sink)->Write(std::string(3000, 'x')) && (*sink)->Finish());
    corpus.push_back(out.text);
  }
  int refused = 0;
  Mutator mutator(corpus, {"\x28\xb5\x2f\xfd", "\x04\x22\x4d\x18", "\x1f\x8b", "\xff\xff\xff\xff"}, 14);
  std::string buffer(1 << 16, '\0');
  for (int i = 0; i < 5'000; ++i) {
    const std::string input = mutator.Next();
    TextSource source(input);
    const auto plain = Decompress(source, "f");
    int64_t total = 0;
    Result<size_t> count = plain ? Result<size_t>(size_t{1}) : Result<size_t>(Fail(plain.error()));
    while (count && *count > 0 && total < (64 << 20)) {
      count = (*plain)->Read(buffer.data(), buffer.size());
      if (count) total += static_cast<int64_t>(*count);
    }
    if (!count) {
      ++refused;
      EXPECT_EQ(count.error().message.find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace overcap
