// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "base/text.h"
#include "launch/compose/launch_command.h"

namespace overcap {
namespace {

// What tells a launcher apart in the answer to --version, and what its version number follows.
struct Sign {
  std::string_view text;
  Flavour flavour;
  std::string_view before_version;
};
constexpr Sign kSigns[] = {
    {"HYDRA build details", Flavour::kHydra, "Version:"},      // MPICH, MVAPICH2
    {"Intel(R) MPI Library", Flavour::kHydra, "Version "},     // its Hydra says no HYDRA
    {"(Open MPI)", Flavour::kOpenMpi, "(Open MPI)"},           // mpirun of 4 and 5
    {"(OpenRTE)", Flavour::kOpenMpi, "(OpenRTE)"},             // mpiexec of 4, and under any other name
    {"(PRRTE)", Flavour::kOpenMpi, ""},                        // prterun, which Open MPI 5 stands on
    {"mpiexec version ", Flavour::kPals, "mpiexec version "},  // "mpiexec version 1.8.0 revision ..."
    {"PALS", Flavour::kPals, "PALS"},
};

std::string_view FirstLine(std::string_view text) {
  text = Trim(text);
  return Trim(text.substr(0, text.find('\n')));
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The number that follows `before`, 0 when there is none.
int NumberAfter(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos || before.empty()) return 0;
  text.remove_prefix(at + before.size());
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t' || text[0] == 'v')) text.remove_prefix(1);
  size_t digits = 0;
  while (digits < text.size() && digits < 6 && std::isdigit(static_cast<unsigned char>(text[digits])))
    ++digits;
  return static_cast<int>(ParseInt(text.substr(0, digits)).value_or(0));
}

// The first line, and where that has no version the line that does: Hydra begins with "HYDRA build details:".
std::string VersionLine(std::string_view text, std::string_view before_version) {
  std::string first(FirstLine(text));
  if (before_version.empty() || first.find(before_version) != std::string::npos) return first;
  const size_t at = text.find(before_version);
  return at == text.npos ? first : StrCat(first, " ", FirstLine(text.substr(at)));
}

// "slurm-wlm 22.05.8", "slurm 23.11.4"
bool IsSlurm(std::string_view line) {
  return line.starts_with("slurm") && line.find(' ') != std::string_view::npos;
}

std::string Says(const std::string& program, std::string_view line) {
  return StrCat("'", program, " --version' says '", ToUtf8(line.substr(0, 100)), "'");
}

}  // namespace

Result<Launcher> LauncherOf(const std::string& program, std::string_view version_output) {
  const std::string_view line = FirstLine(version_output);
  const std::string says = Says(program, line);
  if (IsSlurm(line)) return Launcher{Flavour::kSrun, program, NumberAfter(line, " "), says};
  // srun needs slurm.conf even to tell its version; there is no other program of that name.
  if (BaseName(program) == "srun") {
    return Launcher{Flavour::kSrun, program, 0,
                    StrCat("'", program, " --version' fails: no Slurm is set up here")};
  }
  for (const Sign& sign : kSigns) {
    if (version_output.find(sign.text) == std::string_view::npos) continue;
    const std::string told = Says(program, VersionLine(version_output, sign.before_version));
    const int major = sign.text == "(PRRTE)" ? 5 : NumberAfter(version_output, sign.before_version);
    return Launcher{sign.flavour, program, major, told};
  }
  return Fail(ErrorCode::kNotFound, StrCat(says, ": no launcher that Overcap knows"),
              "it knows srun, and mpiexec of PALS, MPICH, Intel MPI and Open MPI");
}

}  // namespace overcap
