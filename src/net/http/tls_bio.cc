// SPDX-License-Identifier: Apache-2.0
#include "net/http/tls_bio.h"

#include <cerrno>
#include <cstdint>
#include <openssl/bio.h>
#include <sys/socket.h>

namespace overcap {
namespace {

int FdOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

int WriteBio(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = send(FdOf(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int ReadBio(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = recv(FdOf(bio), into, static_cast<size_t>(size), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long ControlBio(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

int CreateBio(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* MakeMethod() {
  BIO_METHOD* method =
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "quiet socket");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, WriteBio);
  BIO_meth_set_read(method, ReadBio);
  BIO_meth_set_ctrl(method, ControlBio);
  BIO_meth_set_create(method, CreateBio);
  return method;
}

}  // namespace

bio_st* NewQuietSocketBio(int fd) {
  static BIO_METHOD* const method = MakeMethod();  // lives as long as the process
  BIO* bio = method != nullptr ? BIO_new(method) : nullptr;
  if (bio != nullptr) BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  return bio;
}

}  // namespace overcap
