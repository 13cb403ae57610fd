// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/courier/courier_options.h"
#include "base/result.h"
#include "sys/fd.h"
#include "sys/supervisor.h"

namespace overcap {

// What could not be uploaded.
struct CourierRest {
  int64_t unsent = 0;  // bytes
  std::string why;     // the store's own words; "": it only took too long
  bool lost = false;   // the courier is gone: nobody knows what was uploaded

  bool empty() const { return unsent == 0 && !lost; }
  std::string Text() const;  // for a note
};

// The agent's end of the line to its courier, which carries code and logs through the job's store
// (docs/formats/job-store.md).
class Courier {
 public:
  // Before this process looks after others' children: the courier shall be nobody's child.
  static Result<Courier> Start(const CourierOptions& options);

  // Waits end when `supervisor`, or nullptr, is told to stop: kConflict.
  // Spec and cancel wish, and of claims, reports and tries what begins with one of these.
  Result<void> Bring(const std::vector<std::string>& prefixes, int64_t timeout_us, Supervisor* supervisor);
  // The cancel wish alone; whether there is one is seen in the folder.
  Result<void> BringCancel(int64_t timeout_us);
  // What stands in the store under the name of this file of the job's folder: ours, unless somebody was
  // first.
  Result<std::string> Create(const std::string& name, Supervisor* supervisor);
  Result<void> Code(const std::string& tree, const std::string& to, Supervisor* supervisor);
  Result<std::string> Blob(const std::string& id, Supervisor* supervisor);

  // Names are relative to the job's folder.
  void Track(const std::vector<std::string>& names);
  void Done(const std::vector<std::string>& names);
  // Until all is in the store; a courier that has died is started again for it.
  CourierRest Drain(int64_t seconds);
  CourierRest Finish(int64_t seconds);

 private:
  explicit Courier(CourierOptions options) : options_(std::move(options)) {}
  Result<void> Connect();
  Result<void> Send(const std::string& message);
  Result<std::string> Ask(const std::string& message, int64_t timeout_us, Supervisor* supervisor);
  Result<std::string> Receive(int64_t timeout_us, Supervisor* supervisor);
  CourierRest Rest(std::string_view what, int64_t seconds);

  CourierOptions options_;
  Fd line_;
  std::vector<std::string> tracked_;
};

}  // namespace overcap
