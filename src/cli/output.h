// SPDX-License-Identifier: Apache-2.0
// All that a command prints goes through here: facts to stdout, everything else to stderr.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/terminal.h"

namespace overcap::cli {

class Table;

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue };

class Output {
 public:
  // The files stay the caller's.
  Output(std::FILE* out, std::FILE* err, Terminal terminal) : out_(out), err_(err), terminal_(terminal) {}
  Output(const Output&) = delete;
  ~Output() { ClearProgress(); }

  // What the global flags asked for.
  void SetModes(bool json, bool quiet, bool no_color);
  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  const Terminal& terminal() const { return terminal_; }

  // Facts, to stdout.
  void Line(std::string_view text);         // and a newline
  void Write(std::string_view bytes);       // as they are (logs)
  void Json(std::string_view json);         // one JSON text and a newline
  void WriteAside(std::string_view bytes);  // as they are, to stderr: what would spoil the JSON on stdout
  void Print(const Table& table);           // shortened to the width of the terminal; whole when it is none

  // Words for the person at the keyboard, to stderr. Notes are silent with --quiet and --json.
  void Note(std::string_view text);
  void Warn(std::string_view text);
  void PrintError(
      const Error& error);  // "overcap: ...", "hint: ..."; with --json {"error": {code, message, hint}}
  // One line that is overwritten by the next; only on a terminal. Anything else printed clears it first.
  void Progress(std::string_view text);
  void ClearProgress();

  // `text` with the escapes of `style` when stdout shows colours.
  std::string Paint(Style style, std::string_view text) const;

  // `fact` ("the job is queued as ID") has happened and must not get lost: until something was written to
  // stdout and reached it, every error that ends the command names it, with `hint`. One that stdout itself
  // causes is then kInternal, never kUnavailable, because doing it again would do it twice.
  void MustTell(std::string fact, std::string hint);
  void AddFact(Error* error) const;

  // Everything written so far reaches the files; an error when stdout cannot take it.
  Result<void> Flush();

 private:
  std::string ForErr(std::string_view text) const;

  std::FILE* out_;
  std::FILE* err_;
  Terminal terminal_;
  bool json_ = false;
  bool quiet_ = false;
  bool progress_shown_ = false;
  std::string fact_, fact_hint_;
  bool fact_written_ = false;
  void (*pipe_handler_)(int) = nullptr;  // what SIGPIPE did before it was ignored for the fact
};

}  // namespace overcap::cli
