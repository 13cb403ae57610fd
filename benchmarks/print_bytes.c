// SPDX-License-Identifier: Apache-2.0
// A rank that prints: `print_bytes N` writes N million bytes of text to stdout, 64 KiB at a time.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  static char block[65536];
  memset(block, 'x', sizeof block);
  for (size_t i = 99; i < sizeof block; i += 100) block[i] = '\n';
  long long left = atoll(argv[1]) * 1000000;
  while (left > 0) {
    ssize_t wrote = write(1, block, left < (long long)sizeof block ? (size_t)left : sizeof block);
    if (wrote <= 0) return 1;
    left -= wrote;
  }
  return 0;
}
