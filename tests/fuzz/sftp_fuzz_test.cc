// SPDX-License-Identifier: Apache-2.0
// What an SFTP server answers, changed at random: never believed, never read past its end.
#include <gtest/gtest.h>

#include "mutate.h"
#include "stores/sftp/sftp_packet.h"

namespace overcap {
namespace {

std::vector<std::string> Replies() {
  SftpBody names;
  names.U32(2);
  for (const char* name : {"a", "some longer name"}) {
    names.Text(name)
        .Text("-rw-r--r-- 1 me me 5 Nov 15 name")
        .U32(0x8000000f)
        .U64(5)
        .U32(1)
        .U32(1)
        .U32(0100644);
    names.U32(7).U32(8).U32(1).Text("more").Text("than this");
  }
  return {names.bytes(),
          SftpBody().U32(4).Text("Failure").Text("en").bytes(),
          SftpBody().Text("handle").bytes(),
          SftpBody().U32(15).U64(1).U32(1).U32(1).U32(0100644).U32(1).U32(2).bytes(),
          SftpBody()
              .U32(3)
              .Text("posix-rename@openssh.com")
              .Text("1")
              .Text("limits@openssh.com")
              .Text("1")
              .bytes(),
          SftpBody().U64(1).U64(2).U64(3).U64(4).bytes()};
}

TEST(SftpFuzz, RepliesOfAnyBytes) {
  int64_t names = 0, broken = 0;
  Mutator mutator(Replies(), {std::string(4, '\xff'), std::string(4, '\0'), std::string("\0\0\0\1", 4)}, 1);
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = mutator.Next();
    if (const auto entries = ParseSftpNames(bytes)) {
      names += static_cast<int64_t>(entries->size());
      ASSERT_LE(entries->size(), bytes.size() / 12 + 1);
      mutator.Keep(bytes);
    } else {
      ++broken;
    }
    const auto text = ParseSftpText(bytes);
    ASSERT_TRUE(!text || text->size() <= bytes.size());
    (void)ParseSftpStatus(bytes);
    (void)ParseSftpAttributes(bytes);
    (void)ParseSftpVersion(bytes);
    (void)ParseSftpLimits(bytes);
    SftpFrame frame;
    ASSERT_TRUE(TakeSftpFrame(bytes, &frame) != SftpFraming::kWhole || frame.size <= bytes.size());
  }
  EXPECT_GT(names, 2);
  EXPECT_GT(broken, 1000);
}

}  // namespace
}  // namespace overcap
