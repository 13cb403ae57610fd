// SPDX-License-Identifier: Apache-2.0
#include "sys/out_of_memory.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

#include "base/result.h"

namespace overcap {
namespace {

[[noreturn]] void EndWithALine() {
  constexpr std::string_view kText = "overcap: there is not enough memory\n";
  (void)!write(STDERR_FILENO, kText.data(), kText.size());
  _exit(ExitStatus(ErrorCode::kInternal));
}

[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      EndWithALine();
    } catch (const std::length_error&) {  // more than any text can have
      EndWithALine();
    } catch (...) {
    }
  }
  std::abort();
}

}  // namespace

void EndWithALineWithoutMemory() {
  std::set_terminate(OnTerminate);
}

}  // namespace overcap
