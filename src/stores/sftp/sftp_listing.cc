// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_listing.h"

#include <algorithm>
#include <sys/stat.h>

#include "base/text.h"

namespace overcap {
namespace {

bool IsLink(const SftpAttributes& attributes) {
  return attributes.mode && S_ISLNK(*attributes.mode);
}

// Removed by somebody meanwhile.
bool Gone(const SftpFailure& failure) {
  return failure.Is(SftpCode::kNoSuchFile);
}

class Lister {
 public:
  Lister(const SftpListing& listing, const std::string& prefix, const std::string& after, size_t limit,
         StorePage* page)
      : listing_(listing), prefix_(prefix), after_(after), limit_(limit), page_(page) {}

  // `folder` is "" or ends with '/'.
  SftpFailure Visit(const std::string& folder) {
    std::vector<SftpEntry> names;
    SftpFailure failure = listing_.session.List(PathOf(folder), &names);
    if (Gone(failure)) return {};
    if (!failure.ok()) return failure;
    std::vector<Found> found;
    for (SftpEntry& entry : names) {
      if (SftpFailure failed = Collect(folder, std::move(entry), &found); !failed.ok()) return failed;
    }
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.path < b.path; });
    for (Found& each : found) {
      if (each.odd) {
        ++left_out_;
      } else if (each.path.back() == '/') {
        if (SftpFailure failed = Visit(each.path); !failed.ok()) return failed;
      } else if (page_->objects.size() == limit_) {
        page_->next = page_->objects.back().key;
      } else {
        page_->left_out += std::exchange(left_out_, 0);
        page_->objects.push_back(SftpObject(std::move(each.path), each.attributes));
      }
      if (!page_->next.empty()) return {};
    }
    if (folder.empty()) page_->left_out += std::exchange(left_out_, 0);
    return {};
  }

 private:
  struct Found {
    std::string path;
    SftpAttributes attributes;
    bool odd = false;
  };

  std::string PathOf(const std::string& folder) const {
    std::string path = listing_.folder + folder;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path.empty() ? "." : path;
  }

  SftpFailure Collect(const std::string& folder, SftpEntry entry, std::vector<Found>* found) {
    if (!IsKeyPart(entry.name, listing_.rule)) return {};
    std::string path = folder + entry.name;
    if (!path.starts_with(prefix_) && !prefix_.starts_with(path)) return {};
    SftpAttributes attributes = entry.attributes;
    const bool any = listing_.rule == KeyRule::kAny;
    if ((IsLink(attributes) && (folder.empty() || any)) || !attributes.mode) {
      SftpFailure failure = listing_.session.Stat(listing_.folder + path, true, &attributes);
      if (failure.link) return failure;
      // Links to folders count directly below a repository's folder only: deeper they could lead in circles.
      const bool folder_link = IsSftpFolder(attributes) && IsLink(entry.attributes);
      if (!failure.ok() || (folder_link && (any || !folder.empty()))) attributes.mode = 0;
    }
    const bool is_folder = IsSftpFolder(attributes);
    if (is_folder) path += '/';
    const bool wanted = path.starts_with(prefix_) || (is_folder && prefix_.starts_with(path));
    const bool before = is_folder ? path < after_ && !after_.starts_with(path) : path <= after_;
    const bool odd = !is_folder && !IsSftpFile(attributes);
    const size_t longest = any ? kLongestAnyKey : kLongestKey;
    if (!wanted || before || path.size() > longest || (odd && !any)) return {};
    found->push_back({std::move(path), attributes, odd});
    return {};
  }

  const SftpListing& listing_;
  const std::string& prefix_;
  const std::string& after_;
  const size_t limit_;
  StorePage* const page_;
  int64_t left_out_ = 0;  // since the last key
};

}  // namespace

bool IsSftpFile(const SftpAttributes& attributes) {
  return attributes.mode && S_ISREG(*attributes.mode);
}

bool IsSftpFolder(const SftpAttributes& attributes) {
  return attributes.mode && S_ISDIR(*attributes.mode);
}

StoredObjectInfo SftpObject(std::string key, const SftpAttributes& attributes) {
  StoredObjectInfo info;
  info.key = std::move(key);
  info.size = attributes.size.value_or(0);
  info.modified_us = static_cast<int64_t>(attributes.modified.value_or(0)) * 1'000'000;
  info.version = StrCat(info.size, "-", attributes.modified.value_or(0));
  return info;
}

SftpFailure ListSftpKeys(const SftpListing& listing, const std::string& prefix, const std::string& after,
                         size_t limit, StorePage* page) {
  return Lister(listing, prefix, after, limit, page).Visit(prefix.substr(0, prefix.rfind('/') + 1));
}

SftpFailure VisitSftpTemporaries(
    const SftpListing& listing,
    const std::function<void(const std::string& path, uint32_t modified)>& visit) {
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    std::vector<SftpEntry> names;
    std::string path = listing.folder + folder;
    SftpFailure failure = listing.session.List(path.empty() ? "." : path, &names);
    if (Gone(failure)) continue;
    if (!failure.ok()) return failure;
    for (const SftpEntry& entry : names) {
      if (entry.name.starts_with(kTemporaryBegin) || entry.name.starts_with(kPartialBegin))
        visit(folder + entry.name, entry.attributes.modified.value_or(0));
      else if (IsKeyPart(entry.name, listing.rule) && IsSftpFolder(entry.attributes))
        folders.push_back(folder + entry.name + "/");
    }
  }
  return {};
}

}  // namespace overcap
