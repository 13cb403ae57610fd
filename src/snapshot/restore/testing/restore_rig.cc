// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/testing/restore_rig.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_writer.h"
#include "sys/random.h"

namespace overcap {
namespace {

Digest AddMeta(ChunkWriter::Lane* lane, std::string_view bytes) {
  const Result<AddedChunk> added = lane->Add(ChunkKind::kMeta, bytes);
  EXPECT_TRUE(added);
  return added ? added->id : Digest();
}

std::unique_ptr<TempFolder> MakeTemp(bool in_memory) {
  if (!in_memory || access("/dev/shm", W_OK) != 0) return std::make_unique<TempFolder>();
  const char* before = getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/dev/shm", 1);
  auto temp = std::make_unique<TempFolder>();
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", kept.c_str(), 1);
  }
  return temp;
}

}  // namespace

RestoreRig::~RestoreRig() = default;

RestoreRig::RestoreRig(bool in_memory)
    : temp_(MakeTemp(in_memory)), store_(std::make_shared<MemStore>("restore")) {
  Result<Repository> made = Repository::Create({store_, &clock_, nullptr});
  EXPECT_TRUE(made) << made.error().message;
  repository_ = std::make_unique<Repository>(std::move(*made));
  std::filesystem::create_directory(*temp_ / "source");
}

std::string RestoreRig::Source(const std::string& name) const {
  return name.empty() ? *temp_ / "source" : *temp_ / "source/" + name;
}

std::string RestoreRig::Target(const std::string& name) const {
  return name.empty() ? *temp_ / "target" : *temp_ / "target/" + name;
}

Digest RestoreRig::Save() {
  BackupRequest request;
  request.folder = Source();
  request.workspace = "w";
  const Result<BackupReport> report = Backup(*repository_, request);
  EXPECT_TRUE(report) << report.error().message;
  if (!report) return {};
  EXPECT_EQ(report->unread, 0) << (report->problems.empty() ? "" : report->problems[0].path);
  return report->tree;
}

Digest RestoreRig::PutTree(const std::vector<SnapshotEntry>& entries) {
  const auto writer = ChunkWriter::Start(*repository_);
  EXPECT_TRUE(writer);
  auto lane = (*writer)->NewLane();
  TreeBuilder builder([&](std::string_view bytes) -> Result<Digest> { return AddMeta(lane.get(), bytes); });
  SnapshotEntry root;
  root.type = SnapshotEntryType::kFolder;
  root.mode = 0755;
  EXPECT_TRUE(builder.Add(root));
  for (const SnapshotEntry& entry : entries) EXPECT_TRUE(builder.Add(entry)) << entry.path;
  const Result<Digest> tree = builder.Finish();
  EXPECT_TRUE(tree);
  EXPECT_TRUE(lane->Flush());
  EXPECT_TRUE((*writer)->Finish());
  return tree ? *tree : Digest();
}

FileContent RestoreRig::PutContent(std::string_view bytes) {
  const auto writer = ChunkWriter::Start(*repository_);
  EXPECT_TRUE(writer);
  auto lane = (*writer)->NewLane();
  const Result<AddedChunk> added = lane->Add(ChunkKind::kData, bytes);
  EXPECT_TRUE(added);
  EXPECT_TRUE(lane->Flush());
  EXPECT_TRUE((*writer)->Finish());
  return {FileContent::Kind::kChunk, added->id};
}

RestoreRequest RestoreRig::Request(const Digest& tree, bool with_seen) const {
  RestoreRequest request;
  request.tree = tree;
  request.target = Target();
  request.owners = geteuid() == 0;
  request.threads = 3;
  if (with_seen) request.seen_file = Target(".overcap/seen");
  return request;
}

RestoreReport RestoreRig::Restored(const RestoreRequest& request) {
  Result<RestoreReport> report = Restore(*repository_, request);
  EXPECT_TRUE(report) << report.error().message;
  if (!report) return {};
  for (const RestoreProblem& problem : report->problems)
    ADD_FAILURE() << problem.path << ": " << problem.what;
  return std::move(*report);
}

std::vector<std::string> RestoreRig::Differences() const {
  return CompareTrees(Source(), Target());
}

void SetModeAndTime(const std::string& path, unsigned mode, int64_t seconds, int64_t nanoseconds) {
  if (!std::filesystem::is_symlink(path)) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
  }
  const timespec times[2] = {{0, UTIME_OMIT}, {seconds, nanoseconds}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

std::string NoiseOf(size_t size, uint64_t seed) {
  SeededRandom random(seed);
  std::string bytes(size, '\0');
  for (size_t at = 0; at + 8 <= size; at += 8) {
    const uint64_t value = random.Next();
    memcpy(bytes.data() + at, &value, 8);
  }
  return bytes;
}

}  // namespace overcap
