// SPDX-License-Identifier: Apache-2.0
// Files that get another content under an old time, as tar and rsync -t make them.
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "control/transfer/md5.h"
#include "control/transfer/transfer.h"
#include "stores/file/file_store.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "stores/testing/quick_folder.h"
#include "sys/random.h"

namespace overcap {
namespace {

std::string Varied(size_t size, uint64_t seed) {
  std::string bytes(size, 'x');
  SeededRandom random(seed);
  for (size_t i = 0; i < bytes.size(); i += 509) bytes[i] = static_cast<char>(random.Next());
  return bytes;
}

// Replaces what is in a file, and gives it always the same old time.
void Rewrite(const std::string& path, const std::string& bytes, int64_t at = 0) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(at)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const timespec times[2] = {{0, UTIME_OMIT}, {1'700'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// The parts that are there are of what the file was: its ctime tells that it is another.
TEST(ChangedFile, UnderItsOldTimeIsNotGoneOnWith) {
  const QuickFolder folder;
  std::filesystem::create_directories(folder / "from");
  const std::string path = folder / "from/large";
  std::ofstream(path) << Varied(40'000'000, 1);
  Rewrite(path, "x");
  const std::shared_ptr<Store> from =
      *FileStore::Open(folder / "from", FileStoreOptions{.keys = KeyRule::kAny});
  const auto to = FileStore::Open(folder / "to", FileStoreOptions{.create = true, .keys = KeyRule::kAny});
  ASSERT_TRUE(to);
  FaultStore breaks(from);
  StoreFault killed;
  killed.ops = {StoreOp::kGet};
  killed.skip = 3;
  killed.error = Error{ErrorCode::kDenied, "killed", ""};
  breaks.Add(killed);
  EXPECT_EQ(TransferAll(breaks, **to, {.workers = 1})->failed, 1);
  const std::string file_times = from->Stat("large")->version;
  Rewrite(path, "something else", 1'000'000);
  EXPECT_EQ(from->Stat("large")->version, file_times);
  EXPECT_EQ(TransferAll(*from, **to, {})->copied, 1);
  EXPECT_TRUE(*(*to)->Get("large") == *from->Get("large"));
}

// A service that tells a checksum when it is asked for one object.
class SumStore : public MemStore {
 public:
  explicit SumStore() : MemStore("", std::make_shared<Content>(), KeyRule::kAny) {}
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    OC_TRY(page, MemStore::List(prefix, next));
    for (StoredObjectInfo& object : page.objects) object.modified_us -= 10'000'000;  // written a while ago
    return page;
  }
  Result<StoredChecksum> ChecksumOf(const StoredObjectInfo& object) const override {
    OC_TRY(bytes, Get(object.key));
    return StoredChecksum{.md5 = Md5Hex(bytes)};
  }
};

TEST(ChangedFile, ThatIsOlderThanTheCopyIsNoticed) {
  const QuickFolder folder;
  std::filesystem::create_directories(folder / "from");
  const std::string path = folder / "from/a";
  const std::string large = Varied(9'000'000, 1);
  std::ofstream(path) << large;
  Rewrite(path, "1");
  const auto from = FileStore::Open(folder / "from", FileStoreOptions{.keys = KeyRule::kAny});
  SumStore to;
  EXPECT_EQ(TransferAll(**from, to, {})->copied, 1);
  EXPECT_EQ(TransferAll(**from, to, {})->same, 1);
  Rewrite(path, "2");
  EXPECT_EQ(TransferAll(**from, to, {})->copied, 1);
  EXPECT_EQ(*to.Get("a", 0, 1), "2");
  EXPECT_EQ(TransferAll(**from, to, {})->same, 1);
}

}  // namespace
}  // namespace overcap
