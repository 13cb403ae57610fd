// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <cerrno>
#include <csignal>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/table.h"

namespace overcap::cli {
namespace {

void Put(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
}

std::string PaintIf(bool color, Style style, std::string_view text) {
  return color ? PaintText(style, text) : std::string(text);
}

std::string ErrorJson(const Error& error) {
  JsonWriter json;
  json.BeginObject().Key("error").BeginObject();
  json.Field("code", ErrorCodeName(error.code)).Field("message", error.message).Field("hint", error.hint);
  return json.EndObject().EndObject().Take();
}

}  // namespace

void Output::SetModes(bool json, bool quiet, bool no_color) {
  json_ = json;
  quiet_ = quiet;
  if (no_color) terminal_.out_color = terminal_.err_color = false;
}

void Output::Line(std::string_view text) {
  if (terminal_.out_is_terminal) {
    Write(OnlyColours(text));
  } else {
    Write(text);
  }
  std::fputc('\n', out_);
}

void Output::Write(std::string_view bytes) {
  ClearProgress();
  fact_written_ = !fact_.empty();
  Put(out_, bytes);
}

void Output::Json(std::string_view json) {
  Line(json);
}

void Output::WriteAside(std::string_view bytes) {
  ClearProgress();
  Put(err_, bytes);
}

void Output::Print(const Table& table) {
  Write(table.Render(terminal_.width, terminal_.out_color));
}

void Output::Note(std::string_view text) {
  if (quiet_ || json_) return;
  ClearProgress();
  Put(err_, StrCat(ForErr(text), "\n"));
}

void Output::Warn(std::string_view text) {
  ClearProgress();
  Put(err_,
      StrCat(PaintIf(terminal_.err_color, Style::kYellow, "overcap: warning:"), " ", ForErr(text), "\n"));
}

void Output::PrintError(const Error& error) {
  ClearProgress();
  std::fflush(out_);  // so that the error stands after what it speaks of
  if (json_) {
    Put(err_, ErrorJson(error) + "\n");
    return;
  }
  Put(err_, StrCat(PaintIf(terminal_.err_color, Style::kRed, "overcap:"), " ", ForErr(error.message), "\n"));
  if (error.hint.empty()) return;
  Put(err_, StrCat(PaintIf(terminal_.err_color, Style::kBlue, "hint:"), " ", ForErr(error.hint), "\n"));
}

void Output::Progress(std::string_view text) {
  if (!terminal_.err_is_terminal || quiet_ || json_) return;
  const int width = terminal_.width > 0 ? terminal_.width : 80;
  Put(err_, StrCat("\r", ShortenToWidth(OnlyColours(text), width - 1), "\033[K"));
  std::fflush(err_);
  progress_shown_ = true;
}

void Output::ClearProgress() {
  if (!progress_shown_) return;
  Put(err_, "\r\033[K");
  std::fflush(err_);
  progress_shown_ = false;
}

std::string Output::ForErr(std::string_view text) const {
  return terminal_.err_is_terminal ? OnlyColours(text) : std::string(text);
}

std::string Output::Paint(Style style, std::string_view text) const {
  return PaintIf(terminal_.out_color, style, text);
}

void Output::MustTell(std::string fact, std::string hint) {
  // A reader that is gone must not end the program before it has said this on stderr.
  if (fact_.empty()) pipe_handler_ = std::signal(SIGPIPE, SIG_IGN);
  fact_ = std::move(fact);
  fact_hint_ = std::move(hint);
  fact_written_ = false;
}

void Output::AddFact(Error* error) const {
  if (fact_.empty() || error->message.find(fact_) != std::string::npos) return;
  error->message += StrCat("; ", fact_);
  error->hint = fact_hint_;
}

Result<void> Output::Flush() {
  ClearProgress();
  std::fflush(err_);
  if (std::fflush(out_) != 0 || std::ferror(out_) != 0) {
    Error error = ErrnoError(errno, "cannot write to stdout");
    if (!fact_.empty()) error.code = ErrorCode::kInternal;
    AddFact(&error);
    return Fail(std::move(error));
  }
  if (fact_written_) {
    fact_.clear();
    fact_written_ = false;
    std::signal(SIGPIPE, pipe_handler_);
  }
  return {};
}

}  // namespace overcap::cli
