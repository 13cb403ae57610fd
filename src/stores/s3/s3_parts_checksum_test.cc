// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_parts_checksum.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(S3PartsChecksumTest, ETagsOfParts) {
  const auto tag = ParsePartsTag("\"D41D8CD98F00B204E9800998ECF8427E-12\"");
  ASSERT_TRUE(tag);
  EXPECT_EQ(tag->md5, "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(tag->parts, 12);
  for (const char* other :
       {"", "-", "d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e-",
        "d41d8cd98f00b204e9800998ecf8427e-0", "d41d8cd98f00b204e9800998ecf8427e-10001",
        "d41d8cd98f00b204e9800998ecf8427e-x", "z41d8cd98f00b204e9800998ecf8427e-1", "abc-1"})
    EXPECT_FALSE(ParsePartsTag(other)) << other;
}

TEST(S3PartsChecksumTest, PartSizesOfProgramsThatAreMuchUsed) {
  EXPECT_EQ(LikelyPartSizes(2048 * kMiB, 256), std::vector<int64_t>{8 * kMiB});
  EXPECT_EQ(LikelyPartSizes(2048 * kMiB, 410), std::vector<int64_t>{5 * kMiB});
  EXPECT_EQ(LikelyPartSizes(2048 * kMiB, 137).front(), 15 * kMiB);
  EXPECT_EQ(LikelyPartSizes(3 * kMiB, 1), std::vector<int64_t>{3 * kMiB});
  EXPECT_EQ(LikelyPartSizes(0, 1), std::vector<int64_t>{1});
  const auto two = LikelyPartSizes(20 * kMiB, 2);
  EXPECT_EQ(two.front(), 15 * kMiB);
  EXPECT_LE(two.size(), 6u);
  for (const int64_t part : two) EXPECT_EQ(PartCount(20 * kMiB, part), 2);
  EXPECT_EQ(LikelyPartSizes(100'000 * kMiB, 9091), std::vector<int64_t>{11 * kMiB});
  EXPECT_TRUE(LikelyPartSizes(5, 10'000).empty());
}

TEST(S3PartsChecksumTest, SumsThatOtherProgramsLeave) {
  HttpResponse head;
  head.headers = {{"x-amz-meta-md5chksum", "1B2M2Y8AsgTpgAmY7PhCfg=="}};
  EXPECT_EQ(Md5OfOthers(head), "d41d8cd98f00b204e9800998ecf8427e");
  head.headers = {
      {"x-amz-meta-s3cmd-attrs", "atime:1/ctime:2/gid:0/md5:d41d8cd98f00b204e9800998ecf8427e/mode:3"}};
  EXPECT_EQ(Md5OfOthers(head), "d41d8cd98f00b204e9800998ecf8427e");
  head.headers = {{"x-amz-meta-md5chksum", "short"}, {"x-amz-meta-s3cmd-attrs", "md5:no"}};
  EXPECT_EQ(Md5OfOthers(head), "");
  EXPECT_EQ(Md5OfOthers({}), "");
}

}  // namespace
}  // namespace overcap
