// SPDX-License-Identifier: Apache-2.0
// A rank whose first act is to look at the clock: CLOCK_MONOTONIC in nanoseconds goes into the named file, by
// rename, so that a reader sees all of it or nothing. Linked statically: nothing runs before main but the C
// library's start.
#include <stdio.h>
#include <time.h>

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (argc != 2) return 2;
  char temporary[4096];
  snprintf(temporary, sizeof temporary, "%s.tmp", argv[1]);
  FILE* file = fopen(temporary, "w");
  if (file == NULL) return 1;
  fprintf(file, "%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
  if (fclose(file) != 0) return 1;
  return rename(temporary, argv[1]) == 0 ? 0 : 1;
}
