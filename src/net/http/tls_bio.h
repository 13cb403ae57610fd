// SPDX-License-Identifier: Apache-2.0
#pragma once

struct bio_st;

namespace overcap {

// OpenSSL's own socket BIO lets a closed connection kill the process (SIGPIPE); this one does not. It does
// not own the socket. nullptr when there is no memory.
bio_st* NewQuietSocketBio(int fd);

}  // namespace overcap
