// SPDX-License-Identifier: Apache-2.0
// Which objects stand in a folder of files, in the byte order of their keys.
#pragma once

#include <functional>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "stores/store.h"
#include "sys/fd.h"

namespace overcap {

// Opens an object or a folder of the store ("" is its own). By KeyRule::kPlain no link is followed but
// directly below the store's folder, where somebody may have put `packs` on another disk: deeper ones another
// user may have planted. ENOTDIR where there is one.
Fd OpenKey(int root, const std::string& path, int flags, KeyRule rule);

// At most `limit` keys that begin with `prefix` and come after `after`; only folders that can hold such are
// read. By KeyRule::kAny links to files count everywhere, and what is neither a file nor a folder is counted
// as left out. 0 or an errno; `failed` then says at which folder or file.
int ListFolderKeys(int root, const std::string& prefix, const std::string& after, size_t limit, KeyRule rule,
                   StorePage* page, std::string* failed);

// When it was written last.
int64_t ModifiedUs(const struct stat& info);
// What a store tells of a file.
StoredObjectInfo FileInfo(const std::string& key, const struct stat& info);

// Every file whose name begins with kTemporaryBegin or kPartialBegin: its path below `root` and when it was
// written last.
int VisitTemporaries(int root, KeyRule rule,
                     const std::function<void(const std::string& path, int64_t modified_us)>& visit,
                     std::string* failed);

}  // namespace overcap
