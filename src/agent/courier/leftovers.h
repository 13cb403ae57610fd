// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace overcap {

// Files that an agent which is gone has left in an attempt's folder, with something in them that may not be
// in the store.
struct Leftover {
  std::string job;                 // its id
  std::string folder;              // of the attempt
  std::vector<std::string> names;  // relative to the job's folder: logs and reports
};

// Of one job's folder: attempts in which no agent lives, and that are not marked as sent.
std::vector<Leftover> FindLeftovers(const std::string& job_dir);
// Of all jobs beside it with the same store, by the mark that NoteStore leaves in their folders.
std::vector<Leftover> FindLeftoversBeside(const std::string& job_dir, const std::string& store);
void NoteStore(const std::string& job_dir, const std::string& store);

// Whether several agents have claims in it: of an elastic job's nodes that see each other's folder. What one
// of them has sent is not all.
bool IsShared(const std::string& attempt_folder);

// All of the attempt that this slot's agent had is in the store.
void MarkSent(const std::string& attempt_folder);
// Removes an attempt on a node, and the job's folder with its last one; with RemoveSent not while an agent
// lives in it.
void RemoveSent(const Leftover& leftover);
void RemoveAttempt(const Leftover& leftover);

}  // namespace overcap
