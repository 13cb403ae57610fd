// SPDX-License-Identifier: Apache-2.0
// Stands in for NVIDIA's management library: two GPUs, and the bad manners of the real one: a thread and open
// descriptors that stay. FAKE_NVML=hang makes it hang, FAKE_NVML=crash makes it crash.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Memory {
  unsigned long long total, free, used;
};

static void* Stay(void* unused) {
  for (;;) pause();
  return unused;
}

int nvmlInit_v2(void) {
  const char* how = getenv("FAKE_NVML");
  pthread_t thread;
  int ends[2];
  if (how != NULL && strcmp(how, "hang") == 0) pause();
  if (how != NULL && strcmp(how, "crash") == 0) abort();
  if (how != NULL && strcmp(how, "fail") == 0) return 9;
  return pipe(ends) == 0 && pthread_create(&thread, NULL, Stay, NULL) == 0 ? 0 : 999;
}

const char* nvmlErrorString(int status) {
  return status == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(size_t)(index + 1);
  return 0;
}

int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  (void)device;
  snprintf(name, size, "NVIDIA A40");
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  snprintf(uuid, size, "GPU-%zu", (size_t)device);
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, struct Memory* memory) {
  (void)device;
  memory->total = 48ull << 30;
  return 0;
}
