// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/copy_proof.h"

#include <gtest/gtest.h>
#include <thread>

#include "sys/random.h"

namespace overcap {
namespace {

std::string Content(size_t size) {
  std::string bytes(size, 'x');
  SeededRandom random(7);
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

std::string OfParts(const std::string& bytes, size_t part) {
  Md5 all;
  for (size_t at = 0; at < bytes.size(); at += part) {
    Md5 one;
    one.Add(std::string_view(bytes).substr(at, part));
    all.Add(one.Bytes());
  }
  return all.Hex();
}

class CopyProofTest : public testing::Test {
 protected:
  // All parts by several threads, in an order in which they may arrive.
  Result<ProofKind> Run(const StoredChecksum& told, int64_t part_size, const std::string& arrived,
                        bool can_read = true) {
    CopyProof proof(told, static_cast<int64_t>(arrived.size()), part_size);
    std::vector<std::thread> threads;
    const int64_t parts = PartCount(static_cast<int64_t>(arrived.size()), part_size);
    for (int64_t part = parts - 1; part >= 0; --part)
      threads.emplace_back([&, part] {
        proof.Add(part, std::string_view(arrived).substr(static_cast<size_t>(part * part_size),
                                                         static_cast<size_t>(part_size)));
      });
    for (std::thread& thread : threads) thread.join();
    return proof.Judge(can_read ? Reader(arrived) : nullptr);
  }
  CopyProof::ReadBack Reader(const std::string& arrived) {
    return [&](int64_t offset, int64_t bytes, std::string* out) -> Result<void> {
      ++reads_;
      *out = arrived.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
      return {};
    };
  }
  static std::string Flipped(std::string bytes, size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  }

  const std::string content_ = Content(1003);
  int reads_ = 0;
};

TEST_F(CopyProofTest, PartsOfTheSameSizeAreProvenInAnyOrderAndNotReadAgain) {
  const StoredChecksum told{.md5_of_parts = OfParts(content_, 100), .part_sizes = {100}, .sure = true};
  EXPECT_EQ(*Run(told, 100, content_), ProofKind::kMd5OfParts);
  EXPECT_EQ(reads_, 0);
  for (const size_t at : {0u, 99u, 100u, 1002u})
    EXPECT_EQ(Run(told, 100, Flipped(content_, at)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(reads_, 0);
}

TEST_F(CopyProofTest, OtherSumsAreTakenInOrder) {
  const StoredChecksum parts{.md5_of_parts = OfParts(content_, 150), .part_sizes = {150}, .sure = true};
  EXPECT_EQ(*Run(parts, 100, content_), ProofKind::kMd5OfParts);
  EXPECT_EQ(Run(parts, 100, Flipped(content_, 500)).error().code, ErrorCode::kCorrupt);
  const StoredChecksum whole{.md5 = Md5Hex(content_)};
  EXPECT_EQ(*Run(whole, 100, content_), ProofKind::kMd5);
  EXPECT_EQ(Run(whole, 100, Flipped(content_, 500)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(reads_, 0);
}

TEST_F(CopyProofTest, AWrongGuessOfThePartsIsNoDamage) {
  StoredChecksum told{.md5_of_parts = OfParts(content_, 120), .part_sizes = {112, 120}};
  EXPECT_EQ(*Run(told, 112, content_), ProofKind::kMd5OfParts);
  EXPECT_GT(reads_, 0);
  EXPECT_EQ(*Run(told, 112, content_, false), ProofKind::kNone);
  told.part_sizes = {112};
  EXPECT_EQ(*Run(told, 112, content_), ProofKind::kNone);
  told.md5 = Md5Hex(content_);
  EXPECT_EQ(*Run(told, 112, content_), ProofKind::kMd5);
  EXPECT_EQ(Run(told, 112, Flipped(content_, 1)).error().code, ErrorCode::kCorrupt);
}

TEST_F(CopyProofTest, WhatCameEarlierIsReadBack) {
  const StoredChecksum told{.md5_of_parts = OfParts(content_, 100), .part_sizes = {100}, .sure = true};
  CopyProof well(told, 1003, 100), ill(told, 1003, 100), blind(told, 1003, 100);
  for (CopyProof* proof : {&well, &ill, &blind}) {
    proof->Incomplete();
    proof->Add(10, std::string_view(content_).substr(1000));
  }
  EXPECT_EQ(*well.Judge(Reader(content_)), ProofKind::kMd5OfParts);
  const std::string damaged = Flipped(content_, 3);
  EXPECT_EQ(ill.Judge(Reader(damaged)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(*blind.Judge(nullptr), ProofKind::kNone);
}

TEST_F(CopyProofTest, NobodyWaitsForAPartThatFailed) {
  CopyProof proof({.md5 = Md5Hex(content_)}, 1003, 100);
  std::thread waits([&] { proof.Add(1, std::string_view(content_).substr(100, 100)); });
  proof.GiveUp();
  waits.join();
}

TEST_F(CopyProofTest, ObjectsInMemory) {
  EXPECT_EQ(*ProveWhole({}, content_), ProofKind::kNone);
  EXPECT_EQ(*ProveWhole({.by_ranges = true}, content_), ProofKind::kMd5OfRanges);
  EXPECT_EQ(*ProveWhole({.md5 = Md5Hex(content_)}, content_), ProofKind::kMd5);
  EXPECT_EQ(*ProveWhole({.md5 = Md5Hex("")}, ""), ProofKind::kMd5);
  EXPECT_EQ(ProveWhole({.md5 = Md5Hex("")}, "x").error().code, ErrorCode::kCorrupt);
  const StoredChecksum one{.md5_of_parts = OfParts(content_, 1003), .part_sizes = {1003}, .sure = true};
  EXPECT_EQ(*ProveWhole(one, content_), ProofKind::kMd5OfParts);
  EXPECT_EQ(ProveWhole(one, Flipped(content_, 9)).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace overcap
