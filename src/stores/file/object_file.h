// SPDX-License-Identifier: Apache-2.0
// How one object becomes a file: steps that leave the old content or the new one, wherever they are cut off.
// Functions give 0 or an errno; paths are relative to the store's folder.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "stores/store.h"
#include "sys/fd.h"

namespace overcap {

enum class FilePutStep {
  kMakeFolder,
  kSyncNewFolder,  // the folder that the new one stands in
  kOpenTemporary,
  kWrite,
  kSyncFile,
  kRename,         // PutMode::kReplace
  kRenameNew,      // PutMode::kCreate
  kLink,           // PutMode::kCreate where there is no such rename
  kDropTemporary,  // after the link
  kSyncFolder,
};

// For tests: called before each step; a number other than 0 is the errno with which the step fails instead.
using FilePutHook = std::function<int(FilePutStep)>;

// How files are made.
struct FilePutManner {
  FilePutHook hook;
  bool private_files = true;  // 0600 in folders of 0700; else what the umask leaves of 0666 and 0777
  bool durable = true;        // file and folder are synced
};

int PutObjectFile(int root, const std::string& key, std::span<const std::string_view> pieces, PutMode mode,
                  const FilePutManner& manner);

// The same in two steps, for who writes in between: a temporary (kTemporaryBegin) in the folder of the key,
// which is made when it is missing, becomes the object or, with an errno, is removed.
int OpenObjectFile(int root, const std::string& key, const FilePutManner& manner, std::string* temporary,
                   Fd* fd);
int PlaceObjectFile(int root, const std::string& key, const std::string& temporary, int fd, PutMode mode,
                    const FilePutManner& manner);

// A fresh temporary in `folder` ("" or "packs/ab/"), which must be there.
int OpenTemporary(int root, const std::string& folder, mode_t mode, std::string* path, Fd* fd);

// mkdir of each part of `folder` that is missing, durable when `manner` wants it.
int MakeFoldersBelow(int root, const std::string& folder, const FilePutManner& manner);

}  // namespace overcap
