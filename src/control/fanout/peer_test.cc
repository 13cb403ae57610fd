// SPDX-License-Identifier: Apache-2.0
// A folder whose tree is known, served to a node by a peer, over real sockets.
#include <fstream>
#include <gtest/gtest.h>

#include "control/fanout/fanout_source.h"
#include "control/fanout/peer_connection.h"
#include "control/fanout/peer_server.h"
#include "control/fanout/virtual_packs.h"
#include "snapshot/restore/restore.h"
#include "stores/all_stores.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

std::string Noise(size_t size, uint64_t seed) {
  SeededRandom random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

// Chunks from a folder, as a node would have them from peers.
class FolderSource : public ChunkSource {
 public:
  explicit FolderSource(const FolderChunks* chunks) : chunks_(*chunks) {}
  Result<void> Fetch(const std::vector<fanout::WantedChunk>& chunks, char* out) override {
    for (const fanout::WantedChunk& wanted : chunks) {
      if (!chunks_.Read(wanted, out)) return Fail(ErrorCode::kNotFound, "no such chunk");
      out += wanted.size;
      bytes += wanted.size;
    }
    return {};
  }
  std::atomic<int64_t> bytes = 0;

 private:
  const FolderChunks& chunks_;
};

class Fanout : public ::testing::Test {
 protected:
  Fanout() {
    EXPECT_TRUE(files_.MakeFolders(folder_ + "/sub/deeper"));
    Write("small", "hello\n");
    Write("sub/empty", "");
    Write("sub/deeper/large", Noise(9'000'000, 1));
    Write("sub/twin", Noise(9'000'000, 1));
    for (int i = 0; i < 50; ++i) Write("sub/f" + std::to_string(i), Noise(static_cast<size_t>(i) * 1000, i));
  }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  FanoutSource Source() {
    Result<FanoutSource> source = ReadFanoutSource({folder_, temp_.Path() + "/root", "h", "u", {}, nullptr});
    EXPECT_TRUE(source) << source.error().message;
    return *std::move(source);
  }
  Result<RestoreReport> Bring(const FanoutSource& source, ChunkSource* from, const std::string& target) {
    const std::string name = "mem:fanout-test-" + std::to_string(++stores_) + target;
    OC_TRY(memory, OpenStore(name, true));
    for (const fanout::Object& object : source.objects) OC_TRY_VOID(memory->Put(object.key, object.content));
    OC_TRY(store, VirtualPacks::Open(std::shared_ptr<Store>(std::move(memory)), from));
    OC_TRY(repository, Repository::Open({.store = std::move(store)}));
    RestoreRequest request;
    request.tree = source.tree;
    request.target = target;
    request.remove_extra = true;
    return Restore(repository, request);
  }

  TempFolder temp_;
  PosixFiles files_;
  std::string folder_ = temp_.Path() + "/source";
  int stores_ = 0;
};

TEST_F(Fanout, ATreeIsRestoredFromVirtualPacks) {
  const FanoutSource source = Source();
  FolderSource from(&source.chunks);
  const auto report = Bring(source, &from, temp_.Path() + "/target");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->failed, 0);
  EXPECT_EQ(report->written_bytes, source.bytes);
  EXPECT_EQ(*files_.Read(temp_.Path() + "/target/sub/deeper/large"), Noise(9'000'000, 1));
  EXPECT_EQ(*files_.Read(temp_.Path() + "/target/sub/f49"), Noise(49'000, 49));
}

TEST_F(Fanout, NothingOfTheDataIsKeptBesideTheFolder) {
  (void)Source();
  const std::string state = FanoutStateOf(temp_.Path() + "/root", folder_);
  OpenStoreOptions options;
  StoreLocation location;
  location.path = state + "/repository";
  auto store = OpenStore(location, {}, options);
  ASSERT_TRUE(store);
  int64_t bytes = 0;
  const auto listed = (*store)->ListAll("");
  ASSERT_TRUE(listed);
  for (const StoredObjectInfo& info : *listed) bytes += info.size;
  EXPECT_LT(bytes, 100'000);
}

TEST_F(Fanout, AfterAChangeOnlyWhatChangedIsReadAndDescribedAnew) {
  const FanoutSource first = Source();
  FolderSource from(&first.chunks);
  ASSERT_TRUE(Bring(first, &from, temp_.Path() + "/target"));
  Write("sub/f7", Noise(7'001, 70));
  const FanoutSource second = Source();
  EXPECT_NE(first.tree, second.tree);
  FolderSource again(&second.chunks);
  const auto report = Bring(second, &again, temp_.Path() + "/target");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->written_files, 1);
  EXPECT_EQ(again.bytes, 7'001);
}

TEST_F(Fanout, WhereChunksAreComesBackFromItsBytesAndDamageIsSeen) {
  const FanoutSource source = Source();
  const std::string bytes = source.chunks.Encode();
  auto back = FolderChunks::Decode(bytes, folder_);
  ASSERT_TRUE(back);
  ASSERT_TRUE(back->OpenFolder());
  EXPECT_EQ(back->spots().size(), source.chunks.spots().size());
  std::string text(6, '\0');
  EXPECT_TRUE(back->Read({Sha256Of("hello\n"), 6}, text.data()));
  EXPECT_EQ(text, "hello\n");
  for (size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(FolderChunks::Decode(damaged, folder_));
  }
  EXPECT_FALSE(FolderChunks::Decode(bytes.substr(0, bytes.size() - 1), folder_));
}

TEST_F(Fanout, APeerServesWhatItHasAndSaysWhatItHasNot) {
  const FanoutSource source = Source();
  KernelRandom random;
  const LinkKey key = LinkKey::Make(random);
  auto server = PeerServer::Start(source.chunks, key);
  ASSERT_TRUE(server);
  auto connection = PeerConnection::Open({"peer", {"127.0.0.1"}, (*server)->port()}, key, -1);
  ASSERT_TRUE(connection) << connection.error().message;
  const std::string wanted = Noise(30'000, 30);
  std::string first(wanted.size(), '\0'), other(10, '\0'), last(6, '\0');
  std::vector<bool> there;
  const std::vector<fanout::WantedChunk> chunks = {{Sha256Of(wanted), static_cast<uint32_t>(wanted.size())},
                                                   {Sha256Of("nobody has it"), 10},
                                                   {Sha256Of("hello\n"), 6}};
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(connection->Get(chunks, {first.data(), other.data(), last.data()}, &there));
    EXPECT_EQ(there, (std::vector<bool>{true, false, true}));
    EXPECT_EQ(first, wanted);
    EXPECT_EQ(last, "hello\n");
  }
  EXPECT_EQ(connection->received(), 3 + 30'000 + 6);
}

// Each had kept the memory of a thread until the end.
TEST_F(Fanout, StrangersThatComeAndGoTakeNothingForEver) {
  const FanoutSource source = Source();
  KernelRandom random;
  const LinkKey key = LinkKey::Make(random);
  const auto server = PeerServer::Start(source.chunks, key);
  ASSERT_TRUE(server);
  const auto mapped_pages = [] {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages;
  };
  const int64_t before = mapped_pages();
  int came = 0;
  for (int i = 0; i < 400; ++i)
    came += PeerConnection::Open({"peer", {"127.0.0.1"}, (*server)->port()}, key, -1).has_value();
  EXPECT_GT(came, 100);  // of more than 64 at the same time some are sent away
  EXPECT_LT(mapped_pages() - before, (int64_t{1} << 30) / 4096);
}

TEST_F(Fanout, WhoDoesNotKnowTheKeyGetsNothing) {
  const FanoutSource source = Source();
  KernelRandom random;
  auto server = PeerServer::Start(source.chunks, LinkKey::Make(random));
  ASSERT_TRUE(server);
  const auto refused =
      PeerConnection::Open({"peer", {"127.0.0.1"}, (*server)->port()}, LinkKey::Make(random), -1);
  EXPECT_FALSE(refused);
}

TEST_F(Fanout, AFileThatWasSwappedForALinkIsNotServed) {
  const FanoutSource source = Source();
  ASSERT_EQ(unlink((folder_ + "/small").c_str()), 0);
  Write("../secret", "hello\n");
  ASSERT_EQ(symlink("../secret", (folder_ + "/small").c_str()), 0);
  std::string text(6, '\0');
  EXPECT_FALSE(source.chunks.Read({Sha256Of("hello\n"), 6}, text.data()));
}

}  // namespace
}  // namespace overcap
