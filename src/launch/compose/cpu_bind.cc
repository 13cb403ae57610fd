// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/cpu_bind.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace overcap {
namespace {

using Kind = CpuBind::Kind;
constexpr int kMaxCpu = 65535;

// What each launcher calls it; "" : it cannot be said. srun has --cpu-bind=WORD, PALS --cpu-bind WORD, Hydra
// -bind-to WORD, Open MPI --bind-to WORD.
struct KindWords {
  Kind kind;
  std::string_view name, srun, pals, hydra, openmpi;
};
constexpr KindWords kWords[] = {
    {Kind::kNone, "none", "none", "none", "none", "none"},
    {Kind::kThreads, "threads", "threads", "thread", "hwthread", "hwthread"},
    {Kind::kCores, "cores", "cores", "core", "core", "core"},
    {Kind::kSockets, "sockets", "sockets", "socket", "socket", "socket"},
    {Kind::kNuma, "numa", "ldoms", "numa", "numa", "numa"},
};
constexpr char kKnown[] = "none, threads, cores, sockets, numa, depth:N or list:0-7:8-15";

tl::unexpected<Error> Bad(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kUsage, StrCat("cpu-bind '", ToUtf8(text), "': ", why), StrCat("write ", kKnown));
}

// "1-8,105-112"
bool ParseSet(std::string_view text, std::vector<int>* cpus) {
  std::set<int> found;
  for (const std::string& part : Split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseInt(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos ? first : ParseInt(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return false;
    for (long long cpu = *first; cpu <= *last; ++cpu) found.insert(static_cast<int>(cpu));
  }
  cpus->assign(found.begin(), found.end());
  return true;
}

Result<CpuBind> ParseList(CpuBind bind) {
  bind.kind = Kind::kList;
  for (const std::string& text : Split(std::string_view(bind.text).substr(5), ':')) {
    if (!ParseSet(text, &bind.sets.emplace_back()))
      return Bad(bind.text, StrCat("'", ToUtf8(text), "' is no list of processors"));
  }
  return bind;
}

Result<CpuBind> ParseDepth(CpuBind bind) {
  bind.kind = Kind::kDepth;
  if (bind.text == "depth") return bind;
  const auto depth = ParseInt(std::string_view(bind.text).substr(6));
  if (!depth || *depth < 1 || *depth > kMaxCpu) return Bad(bind.text, "the depth is a number of processors");
  bind.depth = static_cast<int>(*depth);
  return bind;
}

// 1-8 -> "0x1fe"
std::string HexMask(const std::vector<int>& cpus) {
  std::vector<int> digits(static_cast<size_t>(cpus.back()) / 4 + 1, 0);
  for (const int cpu : cpus) digits[static_cast<size_t>(cpu) / 4] |= 1 << (cpu % 4);
  std::string hex = "0x";
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) hex += "0123456789abcdef"[*digit];
  return hex;
}

bool OneEach(const CpuBind& bind) {
  return std::ranges::all_of(bind.sets, [](const auto& set) { return set.size() == 1; });
}

// Each set by `one`, with `separator` between them.
template <typename One>
std::string JoinSets(const CpuBind& bind, std::string_view separator, One one) {
  std::vector<std::string> parts;
  for (const auto& set : bind.sets) parts.push_back(one(set));
  return Join(parts, separator);
}
std::string FirstCpu(const std::vector<int>& set) {
  return std::to_string(set[0]);
}
std::string PlusSeparated(const std::vector<int>& set) {
  std::vector<std::string> parts;
  for (const int cpu : set) parts.push_back(std::to_string(cpu));
  return Join(parts, "+");
}

tl::unexpected<Error> CannotSay(const CpuBind& bind, const Launcher& launcher, std::string_view knows) {
  return Fail(ErrorCode::kUsage,
              StrCat("cpu-bind '", bind.text, "' cannot be said to ", FlavourName(launcher.flavour),
                     ", which knows ", knows),
              "give the launcher's own flags with --launcher-args");
}

std::vector<std::string> SrunWords(const CpuBind& bind, std::string_view word) {
  if (bind.kind == Kind::kDepth)
    return {StrCat("--cpus-per-task=", std::max(1, bind.depth)), "--cpu-bind=threads"};
  if (bind.kind != Kind::kList) return {StrCat("--cpu-bind=", word)};
  if (OneEach(bind)) return {StrCat("--cpu-bind=map_cpu:", JoinSets(bind, ",", FirstCpu))};
  return {StrCat("--cpu-bind=mask_cpu:", JoinSets(bind, ",", HexMask))};
}

std::vector<std::string> PalsWords(const CpuBind& bind, std::string_view word) {
  if (bind.kind == Kind::kList) return {"--cpu-bind", bind.text};
  if (bind.kind != Kind::kDepth) return {"--cpu-bind", std::string(word)};
  if (bind.depth == 0) return {"--cpu-bind", "depth"};
  return {"--cpu-bind", "depth", "--depth", std::to_string(bind.depth)};
}

std::vector<std::string> HydraWords(const CpuBind& bind, std::string_view word) {
  if (bind.kind == Kind::kList) return {"-bind-to", StrCat("user:", JoinSets(bind, ",", PlusSeparated))};
  if (bind.kind == Kind::kDepth) return {"-bind-to", StrCat("hwthread:", std::max(1, bind.depth))};
  return {"-bind-to", std::string(word)};
}

// Open MPI maps and binds at once: depth is part of --map-by, which compose_open_mpi.cc writes. It refuses to
// bind more ranks than there are processors unless told that this is meant.
Result<std::vector<std::string>> OpenMpiWords(const CpuBind& bind, const Launcher& launcher, int most,
                                              bool overload, std::string_view word) {
  if (bind.kind != Kind::kList) {
    std::string to(bind.kind == Kind::kDepth ? "core" : word);
    if (bind.kind == Kind::kSockets && launcher.major_version >= 5) to = "package";
    if (overload && bind.kind != Kind::kNone) to += ":overload-allowed";
    return std::vector<std::string>{"--bind-to", to};
  }
  if (!OneEach(bind) || launcher.major_version >= 5)
    return CannotSay(bind, launcher,
                     launcher.major_version >= 5 ? "none, threads, cores, sockets, numa and depth:N"
                                                 : "lists of one processor for each rank only");
  if (static_cast<int>(bind.sets.size()) < most)
    return CannotSay(bind, launcher, StrCat("lists of one processor for each of ", most, " ranks only"));
  return std::vector<std::string>{"--cpu-list", JoinSets(bind, ",", FirstCpu), "--bind-to",
                                  "cpu-list:ordered"};
}

}  // namespace

Result<CpuBind> ParseCpuBind(std::string_view text) {
  CpuBind bind;
  bind.text = text;
  if (text.empty()) return bind;
  if (text.starts_with("list:")) return ParseList(std::move(bind));
  if (text == "depth" || text.starts_with("depth:")) return ParseDepth(std::move(bind));
  const auto word = std::ranges::find_if(kWords, [&](const KindWords& known) {
    return known.name == text ||
           (known.name.ends_with('s') && known.name.substr(0, known.name.size() - 1) == text);
  });
  if (word == std::end(kWords)) return Bad(text, "no binding that Overcap knows");
  bind.kind = word->kind;
  return bind;
}

Result<std::vector<std::string>> CpuBindWords(const CpuBind& bind, const Launcher& launcher, int most,
                                              bool overload) {
  if (bind.kind == Kind::kDefault) return std::vector<std::string>();
  const auto* known = std::ranges::find(kWords, bind.kind, &KindWords::kind);
  const KindWords words = known == std::end(kWords) ? KindWords() : *known;
  switch (launcher.flavour) {
    case Flavour::kSrun:
      return SrunWords(bind, words.srun);
    case Flavour::kPals:
      return PalsWords(bind, words.pals);
    case Flavour::kHydra:
      return HydraWords(bind, words.hydra);
    case Flavour::kOpenMpi:
      return OpenMpiWords(bind, launcher, most, overload, words.openmpi);
    case Flavour::kLocal:
    case Flavour::kSsh:
      break;
  }
  if (bind.kind == Kind::kSockets)
    return CannotSay(bind, launcher, "none, threads, cores, numa, depth:N and list:0-7:8-15");
  return std::vector<std::string>();
}

}  // namespace overcap
