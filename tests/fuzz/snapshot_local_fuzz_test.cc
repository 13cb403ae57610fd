// SPDX-License-Identifier: Apache-2.0
// What hosts tell each other in a repository, and what is kept beside a folder.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

#include "inputs.h"
#include "snapshot/backup/seen.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/restore/resume_marker.h"

namespace overcap {
namespace {

const std::vector<std::string> kJsonWords = {
    "{", "}", "\"", ":", ",", "[", "]", "null", "true", "0", "-1", "9223372036854775808", "\\u0000", "\xff"};

TEST(SnapshotLocalFuzz, WritersAreReadOrRefused) {
  WriterRecord record;
  record.process = {.host = "node1", .pid = 4711, .boot = "b", .pid_space = "p", .started = 17};
  record.began_us = 5;
  record.knows = {std::string(32, 'a')};
  ForEachInput(
      Mutator({EncodeWriterRecord(record)}, kJsonWords, 1).Gently(),
      [](const std::string& input) {
        const auto read = DecodeWriterRecord(input, "writers/x");
        if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
        EXPECT_EQ(DecodeWriterRecord(EncodeWriterRecord(*read), "writers/x").value(), *read);
        return true;
      },
      kFewUnderstood);
}

TEST(SnapshotLocalFuzz, CondemnedPacksAreReadOrRefused) {
  const CondemnedRecord record{.packs = {Sha256Of("a"), Sha256Of("b")}, .began_us = 7};
  ForEachInput(
      Mutator({EncodeCondemnedRecord(record)}, kJsonWords, 2).Gently(),
      [](const std::string& input) {
        const auto read = DecodeCondemnedRecord(input, "condemned/x");
        if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
        EXPECT_EQ(DecodeCondemnedRecord(EncodeCondemnedRecord(*read), "condemned/x").value(), *read);
        return true;
      },
      kFewUnderstood / 4);
}

TEST(SnapshotLocalFuzz, MarkersOfARestoreAreReadOrRefused) {
  const ResumeMarker marker{.boot_id = "boot", .tree = Sha256Of("t"), .folder = "/scratch/\n", .began_ns = 5};
  ForEachInput(Mutator({marker.Encode()}, {"\n", "0", "-", "f", " "}, 3).Gently(),
               [](const std::string& input) {
                 const auto read = ResumeMarker::Decode(input);
                 if (!read) return false;
                 const auto again = ResumeMarker::Decode(read->Encode());
                 EXPECT_TRUE(again && again->tree == read->tree && again->folder == read->folder &&
                             again->began_ns == read->began_ns);
                 return true;
               });
}

// In memory, under a path: written anew for each input.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)), path_(StrCat("/proc/self/fd/", fd_)) {}
  ~MemoryFile() { close(fd_); }
  void Fill(std::string_view bytes) {
    EXPECT_EQ(ftruncate(fd_, 0), 0);
    EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

// Cut off, so that it can be made again: the hash would let no change through.
std::string SampleSeen() {
  SeenEntry root, folder, plain, link;
  root.type = folder.type = SnapshotEntryType::kFolder;
  folder.name = "d";
  plain.name = "f";
  plain.content = {FileContent::Kind::kChunk, Sha256Of("f")};
  plain.stamp.size = 1;
  link.name = "l";
  link.type = SnapshotEntryType::kSymlink;
  link.target = "t";
  const std::string xattrs = EncodeXattrs({{"user.a", "1"}});
  plain.xattrs = xattrs;
  SeenWriter writer(5, std::string(32, 'r'), "/folder", root);
  writer.Folder({folder, plain, link});
  writer.Folder({plain});
  char folder_path[] = "/tmp/overcap-fuzz-XXXXXX";
  EXPECT_NE(mkdtemp(folder_path), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder_path) / "seen";
  EXPECT_TRUE(writer.Finish(Sha256Of("tree"), file.string()));
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove_all(folder_path);
  return bytes.substr(0, bytes.size() - 32);
}

// The number of the first folder below the root, in the table before the last 16 bytes, is that of the root.
std::string CircularSeen() {
  std::string bytes = SampleSeen();
  bytes[bytes.size() - 16 - 2 * 12 + 8] = 0;
  return bytes;
}

TEST(SnapshotLocalFuzz, ACacheOfAFolderIsReadOrRefused) {
  MemoryFile file;
  const std::vector<std::string> words = {std::string(1, '\0'),   "\1", "\2", "\x80\x01",
                                          "\xff\xff\xff\xff\x0f", "f",  "d",  "l",
                                          std::string(8, '\xff')};
  ForEachInput(Mutator({SampleSeen(), CircularSeen()}, words, 4).Gently(), [&](const std::string& input) {
    const Digest hash = Sha256Of(input);
    file.Fill(input + std::string(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()));
    const auto seen = Seen::Load(file.path(), std::string(32, 'r'), "/folder");
    if (!seen) return false;
    size_t entries = 0;
    for (uint32_t folder = 0; folder < seen->folder_count(); ++folder) {
      SeenCursor cursor = seen->Open(folder);
      for (SeenEntry entry; cursor.Next(&entry); ++entries) {
        EXPECT_TRUE(!entry.IsFolder() || entry.folder > folder);  // no circles
        DecodeXattrs(entry.xattrs);
      }
    }
    EXPECT_LE(entries, input.size() * seen->folder_count());
    return true;
  });
}

}  // namespace
}  // namespace overcap
