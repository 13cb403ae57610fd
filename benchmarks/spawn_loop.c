// SPDX-License-Identifier: Apache-2.0
// The least work that running N commands can be: posix_spawn and wait, P at a time, each with a log file of
// its own when a folder is given. ./bench compares arrays with it.
//
//   spawn_loop N P FOLDER|- PROGRAM [ARGUMENT...]
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void Die(const char* what) {
  perror(what);
  exit(1);
}

static void Start(int number, const char* folder, char** command) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) Die("posix_spawn_file_actions_init");
  int log = -1;
  if (strcmp(folder, "-") != 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/task-%d.log", folder, number);
    log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (log < 0) Die(path);
    posix_spawn_file_actions_adddup2(&actions, log, 1);
    posix_spawn_file_actions_adddup2(&actions, log, 2);
  }
  pid_t pid;
  if (posix_spawnp(&pid, command[0], &actions, NULL, command, environ) != 0) Die(command[0]);
  posix_spawn_file_actions_destroy(&actions);
  if (log >= 0) close(log);
}

static void WaitForOne(void) {
  int status;
  if (waitpid(-1, &status, 0) < 0) Die("waitpid");
  if (status != 0) {
    fprintf(stderr, "a command failed with status %d\n", status);
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: spawn_loop N P FOLDER|- PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  int count = atoi(argv[1]), at_once = atoi(argv[2]), running = 0;
  for (int i = 0; i < count; i++) {
    if (running == at_once) {
      WaitForOne();
      running--;
    }
    Start(i, argv[3], argv + 4);
    running++;
  }
  while (running-- > 0) WaitForOne();
  return 0;
}
