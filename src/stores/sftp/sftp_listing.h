// SPDX-License-Identifier: Apache-2.0
// Which objects stand in a folder of an SFTP server, in the byte order of their keys.
#pragma once

#include <functional>
#include <string>

#include "stores/sftp/sftp_session.h"
#include "stores/store.h"

namespace overcap {

struct SftpListing {
  SftpSession& session;
  std::string folder;  // of the store, "" or with a '/' at its end
  KeyRule rule = KeyRule::kPlain;
};

// At most `limit` keys that begin with `prefix` and come after `after`.
SftpFailure ListSftpKeys(const SftpListing& listing, const std::string& prefix, const std::string& after,
                         size_t limit, StorePage* page);

// Every file whose name begins with kTemporaryBegin or kPartialBegin: its path below the folder.
SftpFailure VisitSftpTemporaries(
    const SftpListing& listing, const std::function<void(const std::string& path, uint32_t modified)>& visit);

// What its attributes say of an object.
StoredObjectInfo SftpObject(std::string key, const SftpAttributes& attributes);
bool IsSftpFile(const SftpAttributes& attributes);
bool IsSftpFolder(const SftpAttributes& attributes);

}  // namespace overcap
