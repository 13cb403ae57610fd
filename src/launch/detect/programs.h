// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/capture_output.h"
#include "sys/variables.h"

namespace overcap {

// The helper programs of a scheduler, an MPI or a driver: squeue, qstat, mpiexec --version, rocm-smi.
class Programs {
 public:
  virtual ~Programs() = default;
  // The file that `name` stands for on PATH; "" when there is none. Starts nothing.
  virtual std::string Find(std::string_view name) const = 0;
  // Runs argv to its end with nothing on stdin and gives stdout and stderr together, whatever its exit
  // status. kNotFound when there is no such program, kUnavailable when it is not done in time: then nothing
  // of it is left.
  virtual Result<Captured> Run(const std::vector<std::string>& argv, std::chrono::milliseconds deadline) = 0;
};

// Those of the PATH in `variables`, run with all of `variables`, which must outlive it.
class RealPrograms : public Programs {
 public:
  explicit RealPrograms(const Variables& variables) : variables_(variables) {}
  std::string Find(std::string_view name) const override;
  Result<Captured> Run(const std::vector<std::string>& argv, std::chrono::milliseconds deadline) override;

 private:
  const Variables& variables_;
};

}  // namespace overcap
