// SPDX-License-Identifier: Apache-2.0
#include "model/cluster_picture.h"

namespace overcap {
namespace {

template <typename T>
const T* FindNamed(const std::vector<T>& list, std::string_view name) {
  for (const T& one : list) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

}  // namespace

int GpuCountOf(const std::vector<TypedGpus>& gpus) {
  int sum = 0;
  for (const TypedGpus& kind : gpus) sum += kind.count;
  return sum;
}

int GpuCountOf(const std::vector<TypedGpus>& gpus, std::string_view type) {
  int sum = 0;
  for (const TypedGpus& kind : gpus) sum += kind.type == type ? kind.count : 0;
  return sum;
}

const PicturePartition* FindPartition(const ClusterPicture& picture, std::string_view name) {
  return FindNamed(picture.partitions, name);
}

const PictureLab* FindLab(const ClusterPicture& picture, std::string_view name) {
  return FindNamed(picture.labs, name);
}

const PictureQos* FindQos(const ClusterPicture& picture, std::string_view name) {
  return FindNamed(picture.qos, name);
}

}  // namespace overcap
