// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/elf_needs.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <unistd.h>

#include "sys/fd.h"

namespace overcap {
namespace {

constexpr size_t kMaxDynamic = 1 << 20;  // bytes; a real one has a few hundred
constexpr size_t kMaxName = 512;
constexpr size_t kMaxNeeds = 4096;

template <typename T>
std::optional<T> ReadOne(const ReadAt& read, uint64_t offset) {
  const std::string bytes = read(offset, sizeof(T));
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// As many whole T as `bytes` holds.
template <typename T>
std::vector<T> Records(const std::string& bytes) {
  std::vector<T> records(bytes.size() / sizeof(T));
  if (!records.empty()) std::memcpy(records.data(), bytes.data(), records.size() * sizeof(T));
  return records;
}

std::vector<Elf64_Phdr> Segments(const ReadAt& read) {
  const auto header = ReadOne<Elf64_Ehdr>(read, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) return {};
  if (header->e_phentsize != sizeof(Elf64_Phdr)) return {};
  return Records<Elf64_Phdr>(read(header->e_phoff, size_t{header->e_phnum} * sizeof(Elf64_Phdr)));
}

// Where in the file the address `at` of the loaded program stands.
std::optional<uint64_t> FileOffset(const std::vector<Elf64_Phdr>& segments, uint64_t at) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || at < segment.p_vaddr || at - segment.p_vaddr >= segment.p_filesz)
      continue;
    const uint64_t inside = at - segment.p_vaddr;
    if (segment.p_offset > UINT64_MAX - inside) return std::nullopt;
    return segment.p_offset + inside;
  }
  return std::nullopt;
}

std::vector<Elf64_Dyn> Dynamic(const ReadAt& read, const std::vector<Elf64_Phdr>& segments) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    return Records<Elf64_Dyn>(
        read(segment.p_offset, static_cast<size_t>(std::min<uint64_t>(segment.p_filesz, kMaxDynamic))));
  }
  return {};
}

bool IsMpiLibrary(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {"libmpi.",    "libmpi_",     "libmpich",
                                              "libmpicxx.", "libmpifort.", "libmpi-"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace

std::vector<std::string> ElfNeeds(const ReadAt& read) {
  const std::vector<Elf64_Phdr> segments = Segments(read);
  std::vector<uint64_t> places;  // of the names, in the string table
  uint64_t table_address = 0;
  for (const Elf64_Dyn& entry : Dynamic(read, segments)) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) table_address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_NEEDED && places.size() < kMaxNeeds) places.push_back(entry.d_un.d_val);
  }
  const auto table = FileOffset(segments, table_address);
  std::vector<std::string> names;
  if (!table) return names;
  for (const uint64_t place : places) {
    if (place > UINT64_MAX - *table) continue;
    const std::string bytes = read(*table + place, kMaxName);
    const size_t end = bytes.find('\0');
    if (end != std::string::npos) names.push_back(bytes.substr(0, end));
  }
  return names;
}

bool NeedsMpi(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.Get() < 0) return false;
  const auto read_at = [&](uint64_t offset, size_t size) -> std::string {
    if (offset > INT64_MAX) return {};
    std::string bytes(size, '\0');
    const ssize_t got = pread(file.Get(), bytes.data(), size, static_cast<off_t>(offset));
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  };
  return std::ranges::any_of(ElfNeeds(read_at), IsMpiLibrary);
}

}  // namespace overcap
