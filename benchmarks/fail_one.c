// SPDX-License-Identifier: Apache-2.0
// Eight ranks of which one fails: rank 5 leaves CLOCK_MONOTONIC in nanoseconds in the named file when all
// others have begun, and exits with 7; the others wait for a signal. ./bench measures how soon the whole
// launch has ended.
//
//   fail_one FOLDER RANKS
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int Rank(void) {
  static const char* const kNames[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 3; i++) {
    const char* value = getenv(kNames[i]);
    if (value != NULL) return atoi(value);
  }
  return -1;
}

static int Entries(const char* folder) {
  DIR* directory = opendir(folder);
  if (directory == NULL) return -1;
  int count = -2;  // "." and ".."
  while (readdir(directory) != NULL) count++;
  closedir(directory);
  return count;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", argv[1], Rank());
  if (Rank() != 5) {
    FILE* begun = fopen(path, "w");
    if (begun == NULL || fclose(begun) != 0) return 2;
    for (;;) pause();
  }
  while (Entries(argv[1]) < atoi(argv[2]) - 1) usleep(1000);
  FILE* file = fopen(path, "w");
  if (file == NULL) return 2;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  fprintf(file, "%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
  return fclose(file) == 0 ? 7 : 2;
}
