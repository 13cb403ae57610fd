// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/md5_lanes.h"

#include <gtest/gtest.h>
#include <thread>

#include "control/transfer/md5.h"
#include "sys/random.h"

namespace overcap {
namespace {

std::string Content(size_t size, uint64_t seed) {
  std::string bytes(size, 'x');
  SeededRandom random(seed);
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

std::string Expected(const std::string& bytes) {
  Md5 md5;
  md5.Add(bytes);
  return md5.Bytes();
}

TEST(Md5LanesTest, EveryNumberOfLanesAndEveryEndOfAContent) {
  for (size_t count = 1; count <= kMd5Lanes; ++count) {
    for (size_t size = 0; size < 200; ++size) {
      std::vector<std::string> contents;
      std::vector<std::unique_ptr<Md5Lane>> all;
      for (size_t i = 0; i < count; ++i) {
        contents.push_back(Content(size, size * 10 + i));
        all.push_back(std::make_unique<Md5Lane>(contents.back()));
      }
      std::vector<Md5Lane*> lanes;
      for (const auto& lane : all) lanes.push_back(lane.get());
      while (lanes[0]->blocks() > 0) Md5Lane::Advance(lanes, lanes[0]->blocks());
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(all[i]->Bytes(), Expected(contents[i])) << size;
    }
  }
}

TEST(Md5LanesTest, ManyThreadsWithContentsOfManySizes) {
  Md5Crew crew;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 20; ++i)
    threads.emplace_back([&, i] {
      for (size_t n = 0; n < 20; ++n) {
        const std::string content = Content((i * 20 + n) * 977, n);
        EXPECT_EQ(crew.Hash(content), Expected(content));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace overcap
