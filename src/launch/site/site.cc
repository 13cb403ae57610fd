// SPDX-License-Identifier: Apache-2.0
#include "launch/site/site.h"

#include <cerrno>
#include <sys/stat.h>

#include "base/text.h"
#include "launch/site/built_in_sites.h"
#include "launch/site/site_file.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMaxBytes = 1 << 16;  // written by hand

struct Candidate {
  SiteFacts facts;
  int conditions = 0;
};

std::string StemOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find_last_of('.'));
}

bool IsSiteFile(std::string_view name) {
  return !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"));
}

Result<std::string> ReadText(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot read the site file '", path, "'")));
  if (!S_ISREG(info.st_mode))
    return Fail(ErrorCode::kUsage, StrCat("the site file '", path, "' is no plain file"));
  OC_TRY(text, PosixFiles().ReadRange(path, 0, kMaxBytes + 1));
  if (static_cast<int64_t>(text.size()) > kMaxBytes)
    return Fail(ErrorCode::kUsage, StrCat("the site file '", path, "' is larger than 64 KiB"));
  return text;
}

Result<SiteFile> ReadSiteFile(const std::string& path) {
  OC_TRY(text, ReadText(path));
  OC_TRY(site, ParseSiteFile(text, path));
  site.facts.file = path;
  if (site.facts.name.empty()) site.facts.name = StemOf(path);
  return site;
}

// Keeps the better of `best` and `site`; of equal ones the first.
void Consider(SiteFile site, std::string_view host_name, const Variables& variables,
              std::optional<Candidate>* best) {
  const std::optional<SiteFit> fit = FitOf(site.matches, host_name, variables);
  if (!fit || (*best && (*best)->conditions >= fit->conditions)) return;
  site.facts.reason = fit->reason;
  *best = Candidate{std::move(site.facts), fit->conditions};
}

Result<std::optional<Candidate>> FindInFolder(const std::string& folder, std::string_view host_name,
                                              const Variables& variables) {
  std::optional<Candidate> best;
  const auto names = PosixFiles().List(folder);
  if (!names && names.error().code == ErrorCode::kNotFound) return best;
  if (!names) return Fail(names.error());
  for (const std::string& name : *names) {
    if (!IsSiteFile(name)) continue;
    OC_TRY(site, ReadSiteFile(StrCat(folder, "/", name)));
    Consider(std::move(site), host_name, variables, &best);
  }
  return best;
}

// What stands before the second key. Every built-in file begins with its match, and most machines fit none of
// them: no launch should wait for the rest to be read.
std::string_view FirstKeyOf(std::string_view text) {
  int keys = 0;
  for (size_t line = 0; line < text.size(); line = text.find('\n', line) + 1) {
    if (text[line] >= 'a' && text[line] <= 'z' && ++keys == 2) return text.substr(0, line);
    if (text.find('\n', line) == std::string_view::npos) break;
  }
  return text;
}

Result<std::optional<Candidate>> FindBuiltIn(std::string_view host_name, const Variables& variables) {
  std::optional<Candidate> best;
  for (const BuiltInSite& built_in : BuiltInSites()) {
    const std::string file = StrCat(built_in.name, ".yaml");
    OC_TRY(beginning, ParseSiteFile(FirstKeyOf(built_in.text), file));
    if (!FitOf(beginning.matches, host_name, variables)) continue;
    OC_TRY(site, ParseSiteFile(built_in.text, file));
    site.facts.file = "built in";
    if (site.facts.name.empty()) site.facts.name = built_in.name;
    Consider(std::move(site), host_name, variables, &best);
  }
  return best;
}

Result<std::optional<SiteFacts>> ReadNamed(const std::string& path) {
  if (path == "/dev/null") return std::nullopt;
  auto site = ReadSiteFile(path);
  if (!site && site.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kUsage, StrCat("no site file '", path, "'"), "it is named by OVERCAP_SITE");
  if (!site) return Fail(site.error());
  site->facts.reason = "OVERCAP_SITE";
  return std::move(site->facts);
}

}  // namespace

SitePlaces DefaultSitePlaces(const Variables& variables) {
  SitePlaces places;
  places.named_file = variables.Get("OVERCAP_SITE");
  std::string base(variables.Get("XDG_CONFIG_HOME"));
  if (base.empty() && !variables.Get("HOME").empty()) base = StrCat(variables.Get("HOME"), "/.config");
  if (!base.empty()) places.user_folder = StrCat(base, "/overcap/sites");
  return places;
}

Result<std::optional<SiteFacts>> FindSite(std::string_view host_name, const Variables& variables,
                                          const SitePlaces& places) {
  if (!places.named_file.empty()) return ReadNamed(places.named_file);
  for (const std::string& folder : {places.user_folder, places.system_folder}) {
    if (folder.empty()) continue;
    OC_TRY(found, FindInFolder(folder, host_name, variables));
    if (found) return std::move(found->facts);
  }
  if (!places.built_in) return std::nullopt;
  OC_TRY(found, FindBuiltIn(host_name, variables));
  if (!found) return std::nullopt;
  return std::move(found->facts);
}

}  // namespace overcap
