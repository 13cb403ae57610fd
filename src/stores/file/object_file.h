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

// What stands before an object: never part of a key, so that List does not show it.
constexpr std::string_view kTemporaryBegin = ".overcap-tmp-";

int PutObjectFile(int root, const std::string& key, std::span<const std::string_view> pieces, PutMode mode,
                  const FilePutHook& hook);

// A fresh temporary in `folder` ("" or "packs/ab/"), which must be there.
int OpenTemporary(int root, const std::string& folder, std::string* path, Fd* fd);

// mkdir of each part of `folder` that is missing, durable.
int MakeFoldersBelow(int root, const std::string& folder, const FilePutHook& hook);

// open() that goes on after signals and never leaks into other programs.
Fd OpenBelow(int root, const std::string& path, int flags, mode_t mode = 0);

}  // namespace overcap
