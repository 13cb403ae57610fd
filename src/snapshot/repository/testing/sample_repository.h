// SPDX-License-Identifier: Apache-2.0
// Small repositories for tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "snapshot/repository/chunk_writer.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// Path -> content, of files below one folder.
using SampleFiles = std::map<std::string, std::string>;

// In memory, not encrypted unless a secret is given.
Repository NewMemRepository(std::string_view secret = {});
Repository NewRepositoryIn(std::shared_ptr<Store> store, std::string_view secret = {});

// `size` bytes that do not get smaller, the same for each seed.
std::string NoiseBytes(uint64_t seed, size_t size);
// Text that compresses well.
std::string TextBytes(uint64_t seed, size_t size);

// Adds all as chunks and their tree; large files (over `cut` bytes) in several chunks with a map.
Result<Digest> AddSampleTree(ChunkWriter* writer, const SampleFiles& files, size_t cut = 65'536);
// A whole backup.
Result<NamedSnapshot> CommitSample(const Repository& repository, const SampleFiles& files,
                                   const std::string& workspace = "sample", int64_t time_us = 0);
// What the tree says, every chunk checked.
Result<SampleFiles> ReadSampleTree(const Repository& repository, const Digest& tree);

// Keys of all objects that begin with this.
std::vector<std::string> KeysOf(const Store& store, const std::string& prefix);

}  // namespace overcap
