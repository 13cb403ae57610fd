// SPDX-License-Identifier: Apache-2.0
#include "sys/gpu_filter.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

static_assert(sizeof(bpf_insn) == sizeof(uint64_t));

tl::unexpected<Error> Unavailable(int error_number, std::string_view what) {
  Error error = ErrnoError(error_number, StrCat("cannot ", what));
  error.code = ErrorCode::kUnavailable;
  return Fail(std::move(error));
}

int Bpf(int command, bpf_attr* attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, attributes, sizeof *attributes));
}

uint64_t Instruction(int code, uint8_t to, uint8_t from, int16_t jump, int32_t value) {
  bpf_insn instruction{};
  instruction.code = static_cast<uint8_t>(code);
  instruction.dst_reg = to & 15;
  instruction.src_reg = from & 15;
  instruction.off = jump;
  instruction.imm = value;
  return std::bit_cast<uint64_t>(instruction);
}

bool Holds(const std::vector<int>& minors, int minor) {
  return std::find(minors.begin(), minors.end(), minor) != minors.end();
}

// "Device Minor: \t 0" of some lines.
std::string ValueOf(std::string_view text, std::string_view key) {
  for (const std::string& line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && Trim(std::string_view(line).substr(0, colon)) == key)
      return std::string(Trim(std::string_view(line).substr(colon + 1)));
  }
  return "";
}

}  // namespace

// Returns 1 (allowed) for all but character devices 195:0 to 195:253 that are not among `minors`.
std::vector<uint64_t> GpuProgram(const std::vector<int>& minors) {
  constexpr int kLoad = BPF_LDX | BPF_MEM | BPF_W;
  constexpr int kSet = BPF_ALU64 | BPF_MOV | BPF_K;
  constexpr auto kType = static_cast<int16_t>(offsetof(bpf_cgroup_dev_ctx, access_type));
  constexpr auto kMajor = static_cast<int16_t>(offsetof(bpf_cgroup_dev_ctx, major));
  constexpr auto kMinor = static_cast<int16_t>(offsetof(bpf_cgroup_dev_ctx, minor));
  std::vector<uint64_t> program;
  const size_t allow = 7 + minors.size() + 2;  // where the last two instructions stand
  const auto to_allow = [&] { return static_cast<int16_t>(allow - program.size() - 1); };
  program.push_back(Instruction(kLoad, BPF_REG_2, BPF_REG_1, kMajor, 0));
  program.push_back(Instruction(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, to_allow(), kNvidiaMajor));
  program.push_back(Instruction(kLoad, BPF_REG_2, BPF_REG_1, kType, 0));
  program.push_back(Instruction(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff));
  program.push_back(Instruction(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, to_allow(), BPF_DEVCG_DEV_CHAR));
  program.push_back(Instruction(kLoad, BPF_REG_3, BPF_REG_1, kMinor, 0));
  program.push_back(Instruction(BPF_JMP | BPF_JGE | BPF_K, BPF_REG_3, 0, to_allow(), kMostNvidiaGpus));
  for (const int minor : minors)
    program.push_back(Instruction(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_3, 0, to_allow(), minor));
  program.push_back(Instruction(kSet, BPF_REG_0, 0, 0, 0));
  program.push_back(Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  program.push_back(Instruction(kSet, BPF_REG_0, 0, 0, 1));
  program.push_back(Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return program;
}

Result<void> FilterGpusV2(const std::string& group, const std::vector<int>& minors) {
  const Fd folder(open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Unavailable(errno, StrCat("open control group '", group, "'"));
  const std::vector<uint64_t> program = GpuProgram(minors);
  static constexpr char kLicense[] = "Apache-2.0";
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = reinterpret_cast<uintptr_t>(program.data());
  load.insn_cnt = static_cast<uint32_t>(program.size());
  load.license = reinterpret_cast<uintptr_t>(kLicense);
  const Fd loaded(Bpf(BPF_PROG_LOAD, &load));
  if (!loaded) return Unavailable(errno, "load a device program (bpf)");
  bpf_attr attach{};
  attach.target_fd = static_cast<uint32_t>(folder.Get());
  attach.attach_bpf_fd = static_cast<uint32_t>(loaded.Get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;  // what groups above forbid stays forbidden
  if (Bpf(BPF_PROG_ATTACH, &attach) != 0)
    return Unavailable(errno, StrCat("restrict devices in '", group, "'"));
  return {};
}

Result<void> FilterGpusV1(const std::string& group, const std::vector<int>& minors) {
  const Fd deny(open((group + "/devices.deny").c_str(), O_WRONLY | O_CLOEXEC));
  if (!deny) return Unavailable(errno, StrCat("restrict devices in '", group, "'"));
  for (int minor = 0; minor < kMostNvidiaGpus; ++minor) {
    if (Holds(minors, minor)) continue;
    if (const int error = WriteAll(deny.Get(), StrCat("c ", kNvidiaMajor, ":", minor, " rwm")); error != 0)
      return Unavailable(error, StrCat("restrict devices in '", group, "'"));
  }
  return {};
}

NvidiaNode ParseNvidiaInformation(std::string_view text) {
  NvidiaNode node;
  node.minor = static_cast<int>(ParseInt(ValueOf(text, "Device Minor")).value_or(-1));
  node.uuid = ValueOf(text, "GPU UUID");
  return node;
}

std::vector<NvidiaNode> NvidiaNodes() {
  const std::string folder = "/proc/driver/nvidia/gpus";
  const PosixFiles files;
  std::vector<NvidiaNode> nodes;
  for (const std::string& name : files.List(folder).value_or(std::vector<std::string>())) {
    const auto text = files.Read(StrCat(folder, "/", name, "/information"));
    const NvidiaNode node = ParseNvidiaInformation(text ? *text : "");
    if (node.minor >= 0) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace overcap
