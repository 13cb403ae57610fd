// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/cpu_bind.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

std::string Words(const char* text, Flavour flavour, int major = 4, int most = 2, bool overload = false) {
  const auto bind = ParseCpuBind(text);
  if (!bind) return bind.error().message;
  const auto words = CpuBindWords(*bind, {flavour, "mpiexec", major, ""}, most, overload);
  return words ? Join(*words, " ") : words.error().message;
}

TEST(CpuBindTest, SrunIsToldInItsOwnWords) {
  EXPECT_EQ(Words("", Flavour::kSrun), "");
  EXPECT_EQ(Words("none", Flavour::kSrun), "--cpu-bind=none");
  EXPECT_EQ(Words("core", Flavour::kSrun), "--cpu-bind=cores");
  EXPECT_EQ(Words("numa", Flavour::kSrun), "--cpu-bind=ldoms");
  EXPECT_EQ(Words("depth:8", Flavour::kSrun), "--cpus-per-task=8 --cpu-bind=threads");
  EXPECT_EQ(Words("list:3:7", Flavour::kSrun), "--cpu-bind=map_cpu:3,7");
  EXPECT_EQ(Words("list:1-8:9-11,64", Flavour::kSrun), "--cpu-bind=mask_cpu:0x1fe,0x10000000000000e00");
}

TEST(CpuBindTest, PalsTakesListsAsTheyAre) {
  EXPECT_EQ(Words("depth", Flavour::kPals), "--cpu-bind depth");
  EXPECT_EQ(Words("depth:8", Flavour::kPals), "--cpu-bind depth --depth 8");
  EXPECT_EQ(Words("list:1-8:9-16", Flavour::kPals), "--cpu-bind list:1-8:9-16");
  EXPECT_EQ(Words("sockets", Flavour::kPals), "--cpu-bind socket");
}

TEST(CpuBindTest, HydraHasBindTo) {
  EXPECT_EQ(Words("cores", Flavour::kHydra), "-bind-to core");
  EXPECT_EQ(Words("threads", Flavour::kHydra), "-bind-to hwthread");
  EXPECT_EQ(Words("depth:2", Flavour::kHydra), "-bind-to hwthread:2");
  EXPECT_EQ(Words("list:0-1:1", Flavour::kHydra), "-bind-to user:0+1,1");
}

TEST(CpuBindTest, OpenMpiSaysWhatItCannotDo) {
  EXPECT_EQ(Words("sockets", Flavour::kOpenMpi), "--bind-to socket");
  EXPECT_EQ(Words("sockets", Flavour::kOpenMpi, 5), "--bind-to package");
  EXPECT_EQ(Words("cores", Flavour::kOpenMpi, 4, 4, true), "--bind-to core:overload-allowed");
  EXPECT_EQ(Words("none", Flavour::kOpenMpi, 4, 4, true), "--bind-to none");
  EXPECT_EQ(Words("list:0:1", Flavour::kOpenMpi), "--cpu-list 0,1 --bind-to cpu-list:ordered");
  EXPECT_EQ(Words("list:0-1:2", Flavour::kOpenMpi),
            "cpu-bind 'list:0-1:2' cannot be said to openmpi, which knows lists of one processor for each "
            "rank only");
  EXPECT_EQ(Words("list:0", Flavour::kOpenMpi),
            "cpu-bind 'list:0' cannot be said to openmpi, which knows lists of one processor for each of 2 "
            "ranks only");
  EXPECT_EQ(Words("list:0:1", Flavour::kOpenMpi, 5),
            "cpu-bind 'list:0:1' cannot be said to openmpi, which knows none, threads, cores, sockets, numa "
            "and depth:N");
}

TEST(CpuBindTest, NonsenseIsNamed) {
  EXPECT_EQ(Words("cpus", Flavour::kSrun), "cpu-bind 'cpus': no binding that Overcap knows");
  EXPECT_EQ(Words("depth:0", Flavour::kSrun), "cpu-bind 'depth:0': the depth is a number of processors");
  for (const char* bad :
       {"list:", "list:1:", "list:a", "list:3-1", "list:1-", "list:-1", "list:1,,2", "list:99999999"})
    EXPECT_FALSE(ParseCpuBind(bad)) << bad;
}

TEST(CpuBindTest, OurOwnSpawnerNeedsNoWordsAndKnowsNoSockets) {
  EXPECT_EQ(Words("numa", Flavour::kLocal), "");
  EXPECT_EQ(Words("sockets", Flavour::kSsh),
            "cpu-bind 'sockets' cannot be said to ssh, which knows none, threads, cores, numa, depth:N and "
            "list:0-7:8-15");
}

}  // namespace
}  // namespace overcap
