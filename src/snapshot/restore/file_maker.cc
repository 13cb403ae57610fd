// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/file_maker.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "snapshot/file_io.h"

namespace overcap {
namespace {

constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

// The folder in which what replaces an entry is made: rename() must reach the entry's own from there.
int FileMaker::StageFd(uint32_t entry) {
  const uint32_t folder = scene_.tree[entry].parent;
  return scene_.survey.foreign[folder] != 0 ? fds_.Get(folder) : scene_.staging.Open();
}

// As seen from there.
std::string FileMaker::StageName(uint32_t entry) {
  if (scene_.survey.foreign[scene_.tree[entry].parent] != 0) return scene_.staging.NewName();
  if (!lane_) lane_ = scene_.staging.NewLane();
  return *lane_ + scene_.staging.NewName();
}

int FileMaker::Begin(uint32_t entry, NewFile* file) {
  file->entry = entry;
  const mode_t mode = scene_.rules.CreateMode(scene_.tree[entry]);
  if (scene_.survey.states[entry] == EntryState::kMissing) {
    const int folder = fds_.Get(scene_.tree[entry].parent);
    if (folder < 0) return errno;
    file->fd.Reset(openat(folder, scene_.tree.Name(entry), kNew, mode));
    if (file->fd) return 0;
    if (errno != EEXIST) return errno;
    // Made since the look: it is kept, or replaced like what was there before.
    if (scene_.guard.on()) return kChangedMeanwhile;
  }
  const int stage = StageFd(entry);
  if (stage < 0) return errno;
  file->staged = true;
  file->staged_name = StageName(entry);
  file->fd.Reset(openat(stage, file->staged_name.c_str(), kNew, mode));
  return file->fd ? 0 : errno;
}

void FileMaker::Close(NewFile* file) {
  struct statx now;
  if (LookAtName(file->fd.Get(), "", &now) == 0) file->closed = SeenStamp::Of(now);
  file->fd.Reset();
}

int FileMaker::Reopen(NewFile* file) {
  const int folder = file->staged ? StageFd(file->entry) : fds_.Get(scene_.tree[file->entry].parent);
  if (folder < 0) return errno;
  const char* name = file->staged ? file->staged_name.c_str() : scene_.tree.Name(file->entry);
  Fd fd(openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct statx now;
  if (!fd || LookAtName(fd.Get(), "", &now) != 0)
    return errno == ELOOP || errno == EISDIR ? kChangedMeanwhile : errno;
  if (SeenStamp::Of(now) != file->closed) return kChangedMeanwhile;
  file->fd = std::move(fd);
  return 0;
}

int FileMaker::Finish(NewFile* file) {
  const uint32_t entry = file->entry;
  // What is staged was mostly made in another folder than its own.
  const uint32_t folder = scene_.tree[entry].parent;
  const bool inherits = file->staged && scene_.survey.foreign[folder] == 0 ? scene_.staging.hands_down()
                                                                           : scene_.hands_down[folder] != 0;
  int error = SetAttributes(file->fd.Get(), scene_.tree[entry], scene_.tree.Xattrs(entry), scene_.rules,
                            inherits ? AttributesOn::kInherited : AttributesOn::kNew);
  // Some file systems tell only here that the disk is full.
  if (close(file->fd.Release()) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && file->staged) error = Place(StageFd(entry), file->staged_name, entry);
  if (error != 0) Drop(file);
  return error;
}

void FileMaker::Drop(NewFile* file) {
  if (file->fd) Close(file);
  const int folder = file->staged ? StageFd(file->entry) : fds_.Get(scene_.tree[file->entry].parent);
  const char* name = file->staged ? file->staged_name.c_str() : scene_.tree.Name(file->entry);
  if (folder < 0) return;
  struct statx now;
  const bool known = file->closed.inode != 0 && LookAtName(folder, name, &now) == 0;
  if (!known || SeenStamp::Of(now) == file->closed) (void)unlinkat(folder, name, 0);
}

// An exchange is as atomic as a rename over the old file, but some file systems (ext4) begin to write the new
// one to the disk in that, file by file.
int FileMaker::Place(int stage_fd, const std::string& name, uint32_t entry) {
  const int folder = fds_.Get(scene_.tree[entry].parent);
  if (folder < 0 || stage_fd < 0) return errno;
  const char* to = scene_.tree.Name(entry);
  struct statx before, old;
  const bool guarded = scene_.guard.on();
  if (guarded) {
    const int error = LookAtName(folder, to, &before);
    if (error == ENOENT) return PlaceWhereNothingIs(stage_fd, name, entry);
    if (error != 0) return error;
    if (scene_.guard.Changed(scene_.survey.stamps[entry], before)) return kChangedMeanwhile;
    scene_.guard.NoteOwn(before);
  }
  if (renameat2(stage_fd, name.c_str(), folder, to, RENAME_EXCHANGE) == 0) {
    const bool is_file = LookAtName(stage_fd, name.c_str(), &old) == 0 && !S_ISDIR(old.stx_mode);
    if (is_file && (!guarded || SameButCtime(before, old))) {
      Bury(stage_fd, name, entry);
      return 0;
    }
    // It was changed, or replaced by a folder, between the look and the exchange.
    (void)renameat2(stage_fd, name.c_str(), folder, to, RENAME_EXCHANGE);
    return is_file ? kChangedMeanwhile : EISDIR;
  }
  if (errno == ENOENT && guarded) return PlaceWhereNothingIs(stage_fd, name, entry);
  return renameat(stage_fd, name.c_str(), folder, to) == 0 ? 0 : errno;
}

int FileMaker::PlaceWhereNothingIs(int stage_fd, const std::string& name, uint32_t entry) {
  const int folder = fds_.Get(scene_.tree[entry].parent);
  const char* to = scene_.tree.Name(entry);
  if (renameat2(stage_fd, name.c_str(), folder, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno == EEXIST) return kChangedMeanwhile;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  return renameat(stage_fd, name.c_str(), folder, to) == 0 ? 0 : errno;
}

// What was replaced. The descriptor of the staging folder stays open, those of others do not.
void FileMaker::Bury(int stage_fd, const std::string& name, uint32_t entry) {
  if (scene_.survey.foreign[scene_.tree[entry].parent] == 0) {
    scene_.undertaker.Remove(stage_fd, name);
  } else {
    (void)unlinkat(stage_fd, name.c_str(), 0);
  }
}

// What became of an entry.
void FileMaker::Settle(uint32_t entry, int error, int64_t bytes, const char* act) {
  scene_.survey.states[entry] = error == 0 ? EntryState::kMade : EntryState::kFailed;
  if (error != 0) return scene_.ledger.ErrnoProblem(entry, act, error);
  scene_.ledger.Wrote(scene_.tree[entry].IsFile() ? 1 : 0, bytes);
}

void FileMaker::MakeWhole(uint32_t entry, std::string_view content) {
  NewFile file;
  int error = Begin(entry, &file);
  if (error == 0 && !WriteWhole(file.fd.Get(), content)) {
    error = errno;
    Drop(&file);
  } else if (error == 0) {
    error = Finish(&file);
  }
  Settle(entry, error, static_cast<int64_t>(content.size()), "cannot be written");
}

void FileMaker::MakeSymlink(uint32_t entry) {
  const int folder = fds_.Get(scene_.tree[entry].parent);
  if (folder < 0) return Settle(entry, errno, 0, "cannot be made");
  const char* target = scene_.tree.Target(entry).c_str();
  const bool missing = scene_.survey.states[entry] == EntryState::kMissing;
  if (missing && symlinkat(target, folder, scene_.tree.Name(entry)) == 0) {
    const int error = SetLinkAttributes(folder, scene_.tree.Name(entry), scene_.tree[entry],
                                        scene_.tree.Xattrs(entry), scene_.rules);
    return Settle(entry, error, 0, "cannot be given its attributes");
  }
  if (missing && errno != EEXIST) return Settle(entry, errno, 0, "cannot be made");
  if (missing && scene_.guard.on()) return Settle(entry, kChangedMeanwhile, 0, "");
  const int stage = StageFd(entry);
  const std::string name = StageName(entry);
  if (stage < 0 || symlinkat(target, stage, name.c_str()) != 0)
    return Settle(entry, errno, 0, "cannot be made");
  int error =
      SetLinkAttributes(stage, name.c_str(), scene_.tree[entry], scene_.tree.Xattrs(entry), scene_.rules);
  if (error == 0) error = Place(stage, name, entry);
  if (error != 0) (void)unlinkat(stage, name.c_str(), 0);
  Settle(entry, error, 0, "cannot be made");
}

void FileMaker::MakeHardLink(uint32_t entry) {
  const uint32_t first = scene_.tree[entry].link;
  const EntryState state = scene_.survey.states[first];
  if (state == EntryState::kFailed) {
    scene_.survey.states[entry] = EntryState::kFailed;
    return scene_.ledger.Problem(entry, "the file that it is a link to could not be restored");
  }
  const int from = fds_.Get(scene_.tree[first].parent);
  const int folder = from < 0 ? -1 : fds_.Get(scene_.tree[entry].parent);
  if (folder < 0) return Settle(entry, errno, 0, "cannot be made");
  const char* name = scene_.tree.Name(entry);
  if (scene_.survey.states[entry] == EntryState::kMissing) {
    if (linkat(from, scene_.tree.Name(first), folder, name, 0) == 0) return Settle(entry, 0, 0, "");
    if (errno != EEXIST) return Settle(entry, errno, 0, "cannot be linked");
    if (scene_.guard.on()) return Settle(entry, kChangedMeanwhile, 0, "");
  }
  const int stage = StageFd(entry);
  const std::string staged = StageName(entry);
  if (stage < 0 || linkat(from, scene_.tree.Name(first), stage, staged.c_str(), 0) != 0) {
    return Settle(entry, errno, 0, "cannot be linked");
  }
  const int error = Place(stage, staged, entry);
  (void)unlinkat(stage, staged.c_str(), 0);  // rename() of two names of one file leaves both
  Settle(entry, error, 0, "cannot be linked");
}

// Also when the owner himself may not read it.
int FileMaker::OpenOld(uint32_t entry) {
  const int folder = fds_.Get(scene_.tree[entry].parent);
  if (folder < 0) return -1;
  const char* name = scene_.tree.Name(entry);
  constexpr int kOld = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int fd = openat(folder, name, kOld);
  if (fd >= 0 || errno != EACCES) return fd;
  const Fd path_fd(openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!path_fd || ChmodPathFd(path_fd.Get(), 0600) != 0) return -1;
  return openat(folder, name, kOld);
}

void FileMaker::SetOnly(uint32_t entry) {
  if (scene_.tree[entry].IsSymlink()) return MakeSymlink(entry);
  // New times would hide from the next backup that it was changed.
  if (scene_.guard.on()) {
    struct statx now;
    const int folder = fds_.Get(scene_.tree[entry].parent);
    const bool there = folder >= 0 && LookAtName(folder, scene_.tree.Name(entry), &now) == 0;
    if (there && scene_.guard.Changed(scene_.survey.stamps[entry], now))
      return Settle(entry, kChangedMeanwhile, 0, "");
  }
  const Fd fd(OpenOld(entry));
  int error = fd ? 0 : errno;
  if (error == 0) {
    error = SetAttributes(fd.Get(), scene_.tree[entry], scene_.tree.Xattrs(entry), scene_.rules,
                          AttributesOn::kOld);
  }
  scene_.survey.states[entry] = error == 0 ? EntryState::kMade : EntryState::kFailed;
  if (error != 0) scene_.ledger.ErrnoProblem(entry, "cannot be given its attributes", error);
}

}  // namespace overcap
