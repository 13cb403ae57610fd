// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_store.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/text.h"
#include "stores/sftp/sftp_listing.h"
#include "stores/sftp/sftp_upload.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int kLinkTries = 5;

size_t PageSize(KeyRule rule) {
  return rule == KeyRule::kAny ? 32'768 : 4096;
}

// The server starts in the home folder.
std::string ServerFolder(const std::string& path) {
  if (path == "~" || path == "~/") return "";
  std::string folder = path.starts_with("~/") ? path.substr(2) : path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder + (folder.back() == '/' ? "" : "/");
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.empty() ? "." : path;
}

ErrorCode CodeOf(const SftpFailure& failure) {
  switch (failure.code) {
    case SftpCode::kNoSuchFile:
      return ErrorCode::kNotFound;
    case SftpCode::kPermissionDenied:
      return ErrorCode::kDenied;
    case SftpCode::kUnsupported:
      return ErrorCode::kDenied;
    default:
      return ErrorCode::kUnavailable;
  }
}

std::string HintOf(const SftpFailure& failure) {
  if (failure.message.find("llegal seek") != std::string::npos)
    return "this server writes files only from their beginning to their end (rclone: --vfs-cache-mode "
           "writes)";
  if (failure.Is(SftpCode::kFailure))
    return "its disk may be full, or something that is no file is in the way";
  if (failure.Is(SftpCode::kPermissionDenied)) return "see who owns the folder there";
  return "";
}

}  // namespace

Error SftpStore::Because(const SftpFailure& failure, std::string_view what, const std::string& key) const {
  if (failure.link) return *failure.link;
  const std::string object = key.empty() ? "" : StrCat(Quoted(key, 200), " in ");
  return {CodeOf(failure),
          StrCat("cannot ", what, " ", object, "store ", Quoted(target_.location, 300), ": ",
                 failure.message.empty() ? StrCat("error ", static_cast<uint32_t>(failure.code))
                                         : ToUtf8(failure.message)),
          HintOf(failure)};
}

Result<std::unique_ptr<SftpStore>> SftpStore::Open(SftpTarget target, const std::string& path,
                                                   const SftpStoreOptions& options) {
  std::unique_ptr<SftpStore> store(new SftpStore(std::move(target), ServerFolder(path), options));
  OC_TRY_VOID(store->EnsureFolder());
  return store;
}

Result<void> SftpStore::EnsureFolder() {
  OC_TRY(session, Session());
  SftpAttributes attributes;
  const std::string folder = WithoutSlash(folder_);
  SftpFailure failure = session->Stat(folder, true, &attributes);
  if (failure.Is(SftpCode::kNoSuchFile) && options_.create) {
    failure = MakeFolders(*session, folder);
    if (!failure.ok()) return Fail(Because(failure, "make", ""));
    failure = session->Stat(folder, true, &attributes);
  }
  if (failure.Is(SftpCode::kNoSuchFile))
    return Fail(ErrorCode::kNotFound, StrCat("there is no folder ", Quoted(target_.location, 300)));
  if (!failure.ok()) return Fail(Because(failure, "open", ""));
  if (!IsSftpFolder(attributes))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(target_.location, 300), " is not a folder"));
  return {};
}

Result<std::shared_ptr<SftpSession>> SftpStore::Session() const {
  const std::lock_guard lock(mutex_);
  if (session_ && !session_->dead()) return session_;
  OC_TRY(link, SftpLink::Start(target_));
  session_ = std::make_shared<SftpSession>(std::move(link));
  return session_;
}

std::string SftpStore::PathOf(std::string_view key) const {
  return StrCat(folder_, key);
}

SftpFailure SftpStore::MakeFolders(SftpSession& session, const std::string& path) const {
  const std::optional<uint32_t> mode = options_.private_files ? std::optional<uint32_t>(0700) : std::nullopt;
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string made = path.substr(0, slash);
    SftpFailure failure = session.MakeFolder(made, mode);
    if (failure.link) return failure;
    SftpAttributes there;
    // "There already" is no answer of its own in SFTP.
    if (!failure.ok() && (!session.Stat(made, true, &there).ok() || !IsSftpFolder(there))) return failure;
    if (slash == std::string::npos) return {};
  }
}

SftpFailure SftpStore::OpenTemporary(SftpSession& session, const std::string& key, std::string* path,
                                     std::string* handle) const {
  char name[20];
  snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(KernelRandom().Next()));
  *path = PathOf(StrCat(key.substr(0, key.rfind('/') + 1), kTemporaryBegin, name));
  return OpenInFolder(session, *path, kSftpRead | kSftpWrite | kSftpCreate | kSftpExclusive, handle);
}

SftpFailure SftpStore::OpenInFolder(SftpSession& session, const std::string& path, uint32_t flags,
                                    std::string* handle) const {
  const std::optional<uint32_t> mode = options_.private_files ? std::optional<uint32_t>(0600) : std::nullopt;
  SftpFailure failure = session.Open(path, flags, mode, handle);
  if (!failure.Is(SftpCode::kNoSuchFile)) return failure;
  failure = MakeFolders(session, WithoutSlash(path.substr(0, path.rfind('/') + 1)));
  return failure.ok() ? session.Open(path, flags, mode, handle) : failure;
}

// Hard links and plain renames both refuse what is there.
SftpFailure SftpStore::CreateOnly(SftpSession& session, const std::string& temporary, const std::string& path,
                                  bool by_link, bool* there) const {
  SftpAttributes attributes;
  SftpFailure failure;
  // What was in the way may be gone before it is looked at; the server says only that it failed.
  for (int i = 0; i < (by_link ? kLinkTries : 1); ++i) {
    failure = session.Link(temporary, path);
    if (failure.ok()) return session.Remove(temporary);
    *there = !failure.link && session.Stat(path, false, &attributes).ok();
    if (*there || failure.link) return failure;
    if (!failure.Is(SftpCode::kFailure)) break;
  }
  if (by_link) return failure;
  failure = session.Rename(temporary, path);  // a file system without hard links
  *there = !failure.ok() && !failure.link && session.Stat(path, false, &attributes).ok();
  return failure;
}

Result<void> SftpStore::Place(SftpSession& session, const std::string& temporary, const std::string& handle,
                              const std::string& key, PutMode mode, bool by_link) const {
  SftpFailure failure = options_.durable ? session.Sync(handle) : SftpFailure{};
  if (SftpFailure closed = session.CloseAndWait(handle); failure.ok()) failure = std::move(closed);
  bool there = false;
  if (failure.ok())
    failure = mode == PutMode::kCreate ? CreateOnly(session, temporary, PathOf(key), by_link, &there)
                                       : session.Replace(temporary, PathOf(key));
  if (failure.ok()) return {};
  if (!failure.link) (void)session.Remove(temporary);
  if (there)
    return Fail(ErrorCode::kConflict, StrCat("there is a ", Quoted(key, 200), " in store ",
                                             Quoted(target_.location, 300), " already"));
  // The temporary could be written there: it is the link that is not permitted.
  if (by_link && (failure.Is(SftpCode::kUnsupported) || failure.Is(SftpCode::kPermissionDenied)))
    return Fail(ErrorCode::kUsage,
                StrCat("store ", Quoted(target_.location, 300), " cannot keep locks: it has no hard links"),
                "use another store for the lock: a folder, az://, or S3 of AWS, Ceph or MinIO");
  return Fail(Because(failure, "write", key));
}

Result<void> SftpStore::Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) {
  // Small pieces travel together.
  std::string together;
  if (pieces.size() > 1)
    for (const std::string_view piece : pieces) together += piece;
  return PutBytes(key, pieces.empty() ? "" : pieces.size() == 1 ? pieces[0] : together, mode, false);
}

Result<void> SftpStore::CreateStrictly(const std::string& key, std::string_view bytes) {
  return PutBytes(key, bytes, PutMode::kCreate, true);
}

Result<void> SftpStore::PutBytes(const std::string& key, std::string_view bytes, PutMode mode,
                                 bool by_link) const {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY(session, Session());
  std::string temporary, handle;
  SftpFailure failure = OpenTemporary(*session, key, &temporary, &handle);
  if (!failure.ok()) return Fail(Because(failure, "write", key));
  failure = session->Write(handle, 0, bytes);
  if (failure.ok()) return Place(*session, temporary, handle, key, mode, by_link);
  session->Close(handle);
  if (!failure.link) (void)session->Remove(temporary);
  return Fail(Because(failure, "write", key));
}

Result<void> SftpStore::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                  std::string* out) const {
  const std::string& key = object.key;
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY_VOID(ValidRange(key, offset, limit));
  OC_TRY(session, Session());
  const auto missing = [&] {
    return Fail(ErrorCode::kNotFound,
                StrCat("there is no ", Quoted(key, 200), " in store ", Quoted(target_.location, 300)));
  };
  std::string handle;
  SftpFailure failure = session->Open(PathOf(key), kSftpRead, std::nullopt, &handle);
  if (failure.Is(SftpCode::kNoSuchFile)) return missing();
  if (!failure.ok()) {
    // Folders cannot be opened, and the server says only that it failed.
    SftpAttributes attributes;
    if (!failure.link && session->Stat(PathOf(key), true, &attributes).ok() && !IsSftpFile(attributes))
      return missing();
    return Fail(Because(failure, "read", key));
  }
  SftpAttributes attributes;
  failure = session->StatOpen(handle, &attributes);
  const StoredObjectInfo now = SftpObject(key, attributes);
  const bool is_file = IsSftpFile(attributes);
  const bool changed = !object.version.empty() && object.version != now.version;
  if (failure.ok() && is_file && !changed)
    failure = session->Read(handle, offset, std::clamp<int64_t>(now.size - offset, 0, limit), out);
  session->Close(handle);
  if (!failure.ok()) return Fail(Because(failure, "read", key));
  if (!is_file) return missing();
  if (changed)
    return Fail(ErrorCode::kConflict, StrCat(Quoted(key, 200), " in store ", Quoted(target_.location, 300),
                                             " changed while it was read"));
  return {};
}

Result<StoredObjectInfo> SftpStore::Stat(const std::string& key) const {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY(session, Session());
  SftpAttributes attributes;
  const SftpFailure failure = session->Stat(PathOf(key), true, &attributes);
  if (failure.ok() && attributes.mode && !IsSftpFile(attributes) && !IsSftpFolder(attributes))
    return Fail(ErrorCode::kConflict,
                StrCat(Quoted(key, 200), " in store ", Quoted(target_.location, 300),
                       " is a device, a pipe or a socket"),
                "choose another name, or remove it first");
  if (failure.Is(SftpCode::kNoSuchFile) || (failure.ok() && !IsSftpFile(attributes)))
    return Fail(ErrorCode::kNotFound,
                StrCat("there is no ", Quoted(key, 200), " in store ", Quoted(target_.location, 300)));
  if (!failure.ok()) return Fail(Because(failure, "read", key));
  return SftpObject(key, attributes);
}

Result<StorePage> SftpStore::List(const std::string& prefix, const std::string& next) const {
  OC_TRY_VOID(ValidListing(prefix, next, options_.keys));
  OC_TRY(session, Session());
  StorePage page;
  const SftpFailure failure =
      ListSftpKeys({*session, folder_, options_.keys}, prefix, next, PageSize(options_.keys), &page);
  if (!failure.ok()) return Fail(Because(failure, "list", ""));
  return page;
}

Result<void> SftpStore::Remove(const std::string& key) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY(session, Session());
  const SftpFailure failure = session->Remove(PathOf(key));
  if (failure.ok() || failure.Is(SftpCode::kNoSuchFile)) return {};
  SftpAttributes attributes;
  // A folder is no object: there is nothing under this key.
  if (!failure.link && session->Stat(PathOf(key), false, &attributes).ok() && IsSftpFolder(attributes))
    return {};
  return Fail(Because(failure, "remove", key));
}

Result<int64_t> SftpStore::CleanUp(int64_t older_than_us) {
  OC_TRY(session, Session());
  std::string probe, handle;
  SftpFailure failure = OpenTemporary(*session, "x", &probe, &handle);
  if (!failure.ok()) return Fail(Because(failure, "clean up", ""));
  SftpAttributes attributes;
  failure = session->StatOpen(handle, &attributes);
  session->Close(handle);
  const int64_t oldest = static_cast<int64_t>(attributes.modified.value_or(0)) - older_than_us / 1'000'000;
  int64_t removed = 0;
  if (failure.ok())
    failure = VisitSftpTemporaries(
        {*session, folder_, options_.keys}, [&](const std::string& path, uint32_t modified) {
          const std::string whole = PathOf(path);
          if (whole != probe && static_cast<int64_t>(modified) <= oldest && session->Remove(whole).ok())
            ++removed;
        });
  (void)session->Remove(probe);
  if (!failure.ok()) return Fail(Because(failure, "clean up", ""));
  return removed;
}

Result<std::unique_ptr<StoreUpload>> SftpStore::StartUpload(const std::string& key, int64_t size,
                                                            PutMode mode) {
  return ResumeUpload(key, size, mode, "", 0);
}

Result<std::unique_ptr<StoreUpload>> SftpStore::ResumeUpload(const std::string& key, int64_t size,
                                                             PutMode mode, const std::string& identity,
                                                             int64_t) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY(upload, SftpUpload::Start(*this, key, size, mode, identity));
  return std::unique_ptr<StoreUpload>(std::move(upload));
}

Result<void> SftpStore::SetModified(const std::string& key, int64_t modified_us) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY(session, Session());
  const int64_t seconds =
      std::clamp<int64_t>(modified_us / 1'000'000, 0, std::numeric_limits<uint32_t>::max());
  const SftpFailure failure = session->SetModified(PathOf(key), static_cast<uint32_t>(seconds));
  if (!failure.ok()) return Fail(Because(failure, "set the time of", key));
  return {};
}

}  // namespace overcap
