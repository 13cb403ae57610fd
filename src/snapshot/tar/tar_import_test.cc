// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_import.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/tar/tar_reader.h"
#include "snapshot/tar/tar_writer.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

struct Stored {
  TarItem item;
  std::string data;
};

Stored Make(char type, std::string path, std::string data = {}, std::string target = {}) {
  Stored stored;
  SnapshotEntry& entry = stored.item.entry;
  entry.path = std::move(path);
  entry.type = static_cast<SnapshotEntryType>(type);
  entry.mode = type == 'l' ? 0777 : 0750;
  entry.uid = 1;
  entry.gid = 2;
  entry.mtime_ns = 1'600'000'000'000'000'123;
  entry.size = static_cast<int64_t>(data.size());
  entry.target = std::move(target);
  stored.data = std::move(data);
  return stored;
}

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

TarImportRequest Request() {
  TarImportRequest request;
  request.name = "x.tar";
  request.workspace = "w";
  return request;
}

Result<TarImportReport> Import(const Repository& repository, const std::string& tar,
                               const TarImportRequest& request = Request()) {
  TextSource source(tar);
  return ImportTar(repository, source, request);
}

std::string Export(const Repository& repository, const Digest& tree, TarCodec codec = TarCodec::kPlain) {
  TextSink sink;
  TarExportRequest request;
  request.tree = tree;
  request.codec = codec;
  const auto report = ExportTar(repository, request, sink);
  EXPECT_TRUE(report) << report.error().message;
  return sink.text;
}

std::vector<Stored> Everything() {
  std::vector<Stored> all;
  all.push_back(Make('d', ""));
  all.push_back(Make('d', "a"));
  all.push_back(Make('f', "a/empty"));
  all.push_back(Make('f', "a/large", NoiseBytes(1, 9'000'000)));
  all.push_back(Make('h', "a/linked", "", "a/empty"));
  all.push_back(Make('f', "a/" + std::string(200, 'n'), TextBytes(2, 70'000)));
  all.back().item.entry.xattrs = {{"user.k", "v"}};
  all.push_back(Make('l', "b", "", "a/large"));
  all.push_back(Make('f', "sparse", NoiseBytes(3, 1'000'000 + 10)));
  TarItem& sparse = all.back().item;
  sparse.sparse = true;
  sparse.runs = {{65'536, 1'000'000}, {50'000'000'000, 10}};
  sparse.entry.size = 50'000'000'000 + 10'000;
  return all;
}

TEST(TarImport, WhatWasImportedIsExportedAsItWas) {
  const Repository repository = NewMemRepository();
  const std::string tar = WriteTar(Everything());
  const auto report = Import(repository, tar);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(Export(repository, report->snapshot.record.tree) == tar);
  EXPECT_EQ(report->snapshot.record.files, 4);
  EXPECT_EQ(report->snapshot.record.entries, 8);
  EXPECT_EQ(repository.Find("w", "latest")->Id(), report->snapshot.Id());
}

TEST(TarImport, AnImportIsTheNewestWhateverTheClockSays) {
  const Repository repository = NewMemRepository();
  const std::string tar = WriteTar(Everything());
  SnapshotRecord ahead = Import(repository, tar)->snapshot.record;
  SetTimes(&ahead, ahead.clock_us + 86'400'000'000, 0);
  ASSERT_TRUE(repository.PutSnapshot(ahead));
  const auto report = Import(repository, tar);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->snapshot.record.time_us, ahead.time_us + 1);
  EXPECT_EQ(repository.Find("w", "latest")->Id(), report->snapshot.Id());
}

TEST(TarImport, CompressedTarsAndAnyOrderGiveTheSameTree) {
  const Repository repository = NewMemRepository();
  std::vector<Stored> all = Everything();
  const auto first = Import(repository, WriteTar(all));
  ASSERT_TRUE(first);
  for (const TarCodec codec : {TarCodec::kGzip, TarCodec::kLz4, TarCodec::kZstd}) {
    const auto again = Import(repository, Export(repository, first->snapshot.record.tree, codec));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->snapshot.record.tree, first->snapshot.record.tree);
    EXPECT_EQ(again->snapshot.record.new_bytes, 0);
  }
  std::reverse(all.begin(), all.end());
  const auto reversed = Import(repository, WriteTar(all));
  ASSERT_TRUE(reversed) << reversed.error().message;
  EXPECT_EQ(reversed->snapshot.record.tree, first->snapshot.record.tree);
}

TEST(TarImport, WhatIsRefusedLeavesNoSnapshot) {
  const Repository repository = NewMemRepository();
  const auto refused = [&](const std::string& tar) {
    const auto report = Import(repository, tar);
    EXPECT_FALSE(report);
    EXPECT_TRUE(repository.Snapshots("w")->empty());
    return report ? "" : report.error().message;
  };
  EXPECT_EQ(refused(WriteTar({Make('f', "ok", "x"), Make('f', "/etc/passwd", "x")})),
            "tar 'x.tar': the entry '/etc/passwd' has an absolute name");
  EXPECT_EQ(refused(WriteTar({Make('f', "ok", "x"), Make('f', "../x", "x")})),
            "tar 'x.tar': the entry '../x' has '..' in its name");
  EXPECT_EQ(refused(WriteTar({Make('f', "ok", "x"), Make('f', "ok/x", "x")})),
            "tar 'x.tar': 'ok' is a file, and a folder with 'ok/x' in it");
  const std::string tar = WriteTar(Everything());
  EXPECT_EQ(refused(tar.substr(0, tar.size() / 2)), "tar 'x.tar' is cut off (after the entry 'a/large')");
  EXPECT_EQ(refused(""), "tar 'x.tar' is empty");
}

TEST(TarImport, OwnKnowledgeOfAWorkspaceIsLeftOut) {
  const Repository repository = NewMemRepository();
  const auto report = Import(repository, WriteTar({Make('d', ""), Make('d', ".overcap"),
                                                   Make('f', ".overcap/seen", "x"), Make('f', "a")}));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->snapshot.record.entries, 2);
  EXPECT_EQ(report->skipped, 2);
}

TEST(TarImport, AStopEndsIt) {
  const Repository repository = NewMemRepository();
  const std::atomic<bool> stop = true;
  TarImportRequest request = Request();
  request.stop = &stop;
  EXPECT_EQ(Import(repository, WriteTar(Everything()), request).error().code, ErrorCode::kConflict);
}

TEST(TarImport, AFullStoreFailsItAndTheNextOneGoesThrough) {
  const auto faulty = std::make_shared<FaultStore>(std::make_shared<MemStore>());
  const Repository repository = NewRepositoryIn(faulty);
  StoreFault full = StoreFault::Full();
  full.prefix = "packs/";
  full.times = 2;
  faulty->Add(full);
  const auto failed = Import(repository, WriteTar(Everything()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(repository.Snapshots("w")->empty());
  faulty->ClearFaults();
  EXPECT_TRUE(Import(repository, WriteTar(Everything())));
}

TEST(TarExport, AFileIsThereOnlyWhenItIsWhole) {
  const TempFolder temp;
  const Repository repository = NewMemRepository();
  const auto report = Import(repository, WriteTar(Everything()));
  ASSERT_TRUE(report);
  TarExportRequest request;
  request.tree = report->snapshot.record.tree;
  request.codec = TarCodec::kLz4;
  int64_t size = 0;
  const std::string path = temp / "out.tar.lz4";
  ASSERT_TRUE(ExportTarFile(repository, request, path, false, &size));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, size);
  EXPECT_EQ(ExportTarFile(repository, request, path, false, &size).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(ExportTarFile(repository, request, path, true, &size));
  request.tree = Sha256Of("nothing");
  EXPECT_FALSE(ExportTarFile(repository, request, temp / "b.tar", false, &size));
  EXPECT_EQ(PosixFiles().List(temp.Path()).value(), std::vector<std::string>{"out.tar.lz4"});
}

}  // namespace
}  // namespace overcap
