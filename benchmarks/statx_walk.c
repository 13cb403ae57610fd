// SPDX-License-Identifier: Apache-2.0
// statx_walk FOLDER: looks at every entry below it with statx, on two threads, and does nothing else. What a
// backup of an unchanged folder cannot be faster than.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kThreads = 2, kMostFolders = 1 << 20 };

static int* folders;  // open descriptors, a stack
static int waiting, working;
static long entries;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void push(int fd) {
  pthread_mutex_lock(&mutex);
  if (waiting == kMostFolders) abort();
  folders[waiting++] = fd;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
}

static long look(int fd) {
  DIR* dir = fdopendir(fd);
  if (dir == NULL) abort();
  long found = 0;
  for (struct dirent* entry; (entry = readdir(dir)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    struct statx status;
    if (statx(fd, entry->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status) != 0) abort();
    ++found;
    if (!S_ISDIR(status.stx_mode)) continue;
    const int below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0) abort();
    push(below);
  }
  closedir(dir);
  return found;
}

static void* work(void* unused) {
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (waiting == 0 && working > 0) pthread_cond_wait(&changed, &mutex);
    if (waiting == 0) break;
    const int fd = folders[--waiting];
    ++working;
    pthread_mutex_unlock(&mutex);
    const long found = look(fd);
    pthread_mutex_lock(&mutex);
    entries += found;
    --working;
    if (working == 0) pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&mutex);
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folders = malloc(sizeof *folders * kMostFolders);
  const int root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folders == NULL || root < 0) return 1;
  push(root);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("%ld\n", entries);
  return 0;
}
