// SPDX-License-Identifier: Apache-2.0
// How much one request, one job and one user may ask of the engine (docs/formats/api.md, "Limits"). A refusal
// names its limit. They hold for new requests only: a journal with more in it is still read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace overcap {

// One request.
constexpr int kMaxJsonDepth = 32;            // levels of arrays and objects in any JSON text
constexpr size_t kMaxRequestItems = 10'000;  // ids, references or columns in one request
constexpr size_t kMaxReplyBytes = 16 << 20;  // of the reply to a bounded user
constexpr size_t kMaxExplainedJobs = 32;     // with a policy: how many waiting jobs `query` explains
constexpr uint32_t kMaxRequestBytes = 4 << 20;

// One job.
constexpr size_t kMaxNameBytes = 200;      // its name; also names of partitions, accounts and the like
constexpr size_t kMaxPartitions = 64;      // that it may start in
constexpr size_t kMaxSpecBytes = 1 << 20;  // its spec, as JSON text
constexpr int kMaxRanksPerCpu = 16;        // ranks on a node, for each processor of the machine
constexpr size_t kMaxLogPaths = 10'000;    // in its record: those of the newest attempts
constexpr size_t kMaxPublicRanges = 8;     // of an array, as other users see it

// One user.
constexpr int64_t kMaxOpenSpecBytes = 64 << 20;    // specs of jobs that have not ended
constexpr int64_t kMaxKeptSpecBytes = 256 << 20;   // specs of all jobs that are still listed
constexpr size_t kMaxConnections = 256;            // while at least half of the engine's places are free
constexpr size_t kMaxConnectionsWhenFull = 32;     // while fewer are free
constexpr size_t kMaxHeldRequestBytes = 32 << 20;  // of incomplete requests, over all connections
constexpr size_t kMaxUnreadBytes = 64 << 20;       // of unread replies, over all connections
constexpr int64_t kMaxTurnUs = 50'000;             // of the engine's time in one turn of its loop

// What the engine reads of the report of a job, which the job's user can forge.
constexpr int64_t kMaxReportBytes = 208 << 20;   // of one slot, which may run all tasks of an array
constexpr int64_t kMaxReportsBytes = 256 << 20;  // of all slots of an array, to find unreported tasks
constexpr int64_t kWholeReportBytes = 4 << 20;   // all lines; behind these only the one that ends the slot
constexpr int64_t kReportBytesPerTask = 512;     // added to that for each try of a task
constexpr int64_t kSlowReportBytes = 8 << 20;    // in lines that need the slow parser: agents write none
constexpr size_t kMaxReportLine = 64 << 10;      // longer lines are skipped
constexpr int64_t kMaxCountedBytes = 8 << 20;    // read in one turn to count the tasks of running arrays

}  // namespace overcap
