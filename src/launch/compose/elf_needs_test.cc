// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/elf_needs.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

// A program of one segment at address 0x1000 that needs `names`.
std::string Elf(const std::vector<std::string>& names) {
  constexpr uint64_t kBase = 0x1000;
  std::string strings(1, '\0');
  std::vector<Elf64_Dyn> dynamic;
  for (const std::string& name : names) {
    dynamic.push_back({DT_NEEDED, {strings.size()}});
    strings += name + '\0';
  }
  const size_t headers = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const size_t table = headers + (names.size() + 2) * sizeof(Elf64_Dyn);
  dynamic.push_back({DT_STRTAB, {kBase + table}});
  dynamic.push_back({DT_NULL, {0}});
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  const size_t size = table + strings.size();
  Elf64_Phdr segments[2] = {
      {PT_LOAD, 0, 0, kBase, 0, size, size, 0},
      {PT_DYNAMIC, 0, headers, kBase + headers, 0, table - headers, table - headers, 0}};
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file.append(reinterpret_cast<const char*>(segments), sizeof(segments));
  file.append(reinterpret_cast<const char*>(dynamic.data()), dynamic.size() * sizeof(Elf64_Dyn));
  return file + strings;
}

std::vector<std::string> Needs(const std::string& file) {
  return ElfNeeds([&](uint64_t offset, size_t size) -> std::string {
    return offset >= file.size() ? "" : file.substr(static_cast<size_t>(offset), size);
  });
}

TEST(ElfNeedsTest, LibrariesAreFound) {
  EXPECT_EQ(Needs(Elf({"libmpi.so.40", "libc.so.6"})),
            (std::vector<std::string>{"libmpi.so.40", "libc.so.6"}));
  EXPECT_TRUE(Needs(Elf({})).empty());
}

TEST(ElfNeedsTest, OtherFilesNeedNothing) {
  EXPECT_TRUE(Needs("").empty());
  EXPECT_TRUE(Needs("#!/bin/sh\n").empty());
  EXPECT_TRUE(Needs("\x7f"
                    "ELF")
                  .empty());
}

TEST(ElfNeedsTest, ThisTestNeedsNoMpiAndWhatIsNotThereNeitherDoes) {
  EXPECT_FALSE(NeedsMpi("/proc/self/exe"));
  EXPECT_FALSE(NeedsMpi("/nonexistent"));
  EXPECT_FALSE(NeedsMpi("/"));
}

TEST(ElfNeedsTest, RealProgramsNameTheCLibrary) {
  std::string self;
  FILE* file = fopen("/proc/self/exe", "rb");
  ASSERT_NE(file, nullptr);
  char buffer[65536];
  while (const size_t got = fread(buffer, 1, sizeof(buffer), file)) self.append(buffer, got);
  fclose(file);
  const auto needs = Needs(self);
  EXPECT_NE(std::find(needs.begin(), needs.end(), "libc.so.6"), needs.end());
}

RC_GTEST_PROP(ElfNeedsProperty, DamagedProgramsAreReadWithoutHarm, ()) {
  std::string file = Elf({"libmpi.so.40", "libc.so.6", "libmpich.so.12"});
  const int changes = *rc::gen::inRange(1, 12);
  for (int i = 0; i < changes; ++i) {
    const auto at = static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(file.size())));
    file[at] = static_cast<char>(*rc::gen::element(0, 1, 0x7f, 0xff, 0x80, *rc::gen::inRange(0, 256)));
  }
  file.resize(static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(file.size()) + 1)));
  for (const std::string& name : Needs(file)) RC_ASSERT(name.size() < 512);
}

}  // namespace
}  // namespace overcap
