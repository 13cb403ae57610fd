// SPDX-License-Identifier: Apache-2.0
#include "clusters/fake/fake_program.h"

#include "base/text.h"

namespace overcap {
namespace {

std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : Split(line, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

FakeProgram OfScript(std::string_view script) {
  FakeProgram whole;
  for (const std::string& part : Split(script, ';')) {
    const FakeProgram one = FakeProgramOf(Words(part));
    whole = {whole.seconds + one.seconds, one.exit_status, one.signal};
  }
  return whole;
}

}  // namespace

FakeProgram FakeProgramOf(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  const std::string& verb = command[0];
  if (verb == "false") return {.exit_status = 1};
  if (verb == "sh" && command.size() == 3 && command[1] == "-c") return OfScript(command[2]);
  const long long number = command.size() == 2 ? ParseInt(command[1]).value_or(0) : 0;
  if (verb == "sleep") return {.seconds = number};
  if (verb == "exit") return {.exit_status = static_cast<int>(number)};
  if (verb == "kill")
    return {.exit_status = 128 + static_cast<int>(number), .signal = static_cast<int>(number)};
  return {};
}

}  // namespace overcap
