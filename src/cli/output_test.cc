// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <gtest/gtest.h>

#include "cli/table.h"

namespace overcap::cli {
namespace {

// An Output into memory.
class Captured {
 public:
  explicit Captured(Terminal terminal = {})
      : out_(open_memstream(&out_text_, &out_size_)),
        err_(open_memstream(&err_text_, &err_size_)),
        output_(out_, err_, terminal) {}
  ~Captured() {
    std::fclose(out_);
    std::fclose(err_);
    std::free(out_text_);
    std::free(err_text_);
  }
  Output& operator*() { return output_; }
  Output* operator->() { return &output_; }
  std::string Out() { return std::fflush(out_), std::string(out_text_, out_size_); }
  std::string Err() { return std::fflush(err_), std::string(err_text_, err_size_); }

 private:
  char* out_text_ = nullptr;
  char* err_text_ = nullptr;
  size_t out_size_ = 0, err_size_ = 0;
  std::FILE* out_;
  std::FILE* err_;
  Output output_;
};

constexpr Terminal kColorful = {true, true, true, true, 40};
const Error kError = {ErrorCode::kNotFound, "no job 'x'", "overcap ls"};

TEST(Output, AnErrorIsOneLineAndAHint) {
  Captured output;
  output->PrintError(kError);
  EXPECT_EQ(output.Err(), "overcap: no job 'x'\nhint: overcap ls\n");
  EXPECT_EQ(output.Out(), "");
}

TEST(Output, AnErrorWithJsonIsAnObject) {
  Captured output;
  output->SetModes(true, false, false);
  output->PrintError(kError);
  EXPECT_EQ(output.Err(),
            "{\"error\":{\"code\":\"not_found\",\"message\":\"no job 'x'\",\"hint\":\"overcap ls\"}}\n");
}

TEST(Output, ColoursAreOnlyForTerminalsThatWantThem) {
  Captured plain;
  EXPECT_EQ(plain->Paint(Style::kRed, "x"), "x");
  Captured colorful(kColorful);
  EXPECT_EQ(colorful->Paint(Style::kRed, "x"), "\033[31mx\033[0m");
  colorful->SetModes(false, false, true);
  EXPECT_EQ(colorful->Paint(Style::kRed, "x"), "x");
}

TEST(Output, ProgressIsOnlyForTerminalsAndIsClearedByTheNextLine) {
  Captured plain;
  plain->Progress("half");
  EXPECT_EQ(plain.Err(), "");
  Captured terminal(kColorful);
  terminal->Progress("half");
  terminal->Line("done");
  EXPECT_EQ(terminal.Err(), "\rhalf\033[K\r\033[K");
  EXPECT_EQ(terminal.Out(), "done\n");
}

TEST(Output, WhatATerminalShowsHasNoEscapesButColours) {
  const std::string evil =
      "\033[31mred\033[0m \033]0;title\a\033[2Jtext\xC2\x9B"
      "1mc";
  const std::string shown =
      "\033[31mred\033[0m text\xEF\xBF\xBD"
      "1mc";
  Captured terminal(kColorful);
  terminal->Line(evil);
  terminal->Note(evil);
  terminal->PrintError({ErrorCode::kNotFound, evil, ""});
  EXPECT_EQ(terminal.Out(), shown + "\n");
  EXPECT_NE(terminal.Err().find(shown), std::string::npos);
  EXPECT_EQ(terminal.Err().find("\033]"), std::string::npos);
  EXPECT_EQ(terminal.Err().find("\033[2J"), std::string::npos);
  Captured file;
  file->Line(evil);
  EXPECT_EQ(file.Out(), evil + "\n");
}

TEST(Output, NotesAreSilentWhenQuiet) {
  Captured output;
  output->Note("captured 3 files");
  output->SetModes(false, true, false);
  output->Note("unheard");
  EXPECT_EQ(output.Err(), "captured 3 files\n");
}

TEST(Output, AFullDiskBehindStdoutIsAnError) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  Output output(full, stderr, {});
  output.Line("x");
  const auto flushed = output.Flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().message, "cannot write to stdout: No space left on device");
  std::fclose(full);
}

constexpr char kQueued[] = "the job is queued as a_1_2";

TEST(Output, WhatHasHappenedIsInTheErrorOfAFullDiskWhichIsThenNoReasonToTryAgain) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  Output output(full, stderr, {});
  output.MustTell(kQueued, "overcap query a_1_2");
  output.Line("a_1_2");
  const auto flushed = output.Flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, ErrorCode::kInternal);
  EXPECT_EQ(flushed.error().message,
            "cannot write to stdout: No space left on device; the job is queued as a_1_2");
  EXPECT_EQ(flushed.error().hint, "overcap query a_1_2");
  std::fclose(full);
}

TEST(Output, WhatHasHappenedIsInEveryErrorUntilItWasPrinted) {
  Captured output;
  output->MustTell(kQueued, "overcap query a_1_2");
  EXPECT_TRUE(output->Flush()) << "nothing was printed yet";
  Error error = kError;
  output->AddFact(&error);
  EXPECT_EQ(error.message, "no job 'x'; the job is queued as a_1_2");
  output->AddFact(&error);
  EXPECT_EQ(error.message, "no job 'x'; the job is queued as a_1_2") << "once";
  output->Line("a_1_2");
  EXPECT_TRUE(output->Flush());
  Error later = kError;
  output->AddFact(&later);
  EXPECT_EQ(later.message, "no job 'x'");
}

Table Jobs() {
  Table table({{"ID"}, {"GPUS", true}, {"COMMAND", false, true}});
  table.AddRow({"a1", "8", "python train.py --epochs 100"}, {Style::kGreen});
  table.AddRow({"b22", "16", "名前 x"});
  return table;
}

TEST(Table, ColumnsAreAlignedByWhatTheTerminalShows) {
  EXPECT_EQ(Jobs().Render(0, false),
            "ID   GPUS  COMMAND\n"
            "a1      8  python train.py --epochs 100\n"
            "b22    16  名前 x\n");
}

TEST(Table, FlexibleColumnsGiveWay) {
  EXPECT_EQ(Jobs().Render(24, false),
            "ID   GPUS  COMMAND\n"
            "a1      8  python train…\n"
            "b22    16  名前 x\n");
}

TEST(Table, ColumnsWithoutAnythingInThemAreLeftOut) {
  Table table({{"ID"}, {"NAME"}, {"COMMAND"}});
  table.AddRow({"a1", "", "x"});
  EXPECT_EQ(table.Render(80, false), "ID  COMMAND\na1  x\n");
}

TEST(Table, WhatIsNotFlexibleIsNeverCut) {
  Table table({{"KEY"}, {"VALUE", false, true}, {"FROM"}});
  table.AddRow({"k", "a value that is long", "/a/path/overcap.yaml:17"});
  EXPECT_EQ(table.Render(20, false), "KEY  VALUE     FROM\nk    a value…  /a/path/overcap.yaml:17\n");
}

TEST(Table, StylesDoNotDisturbTheAlignment) {
  EXPECT_EQ(Jobs().Render(0, true),
            "\033[1mID\033[0m   \033[1mGPUS\033[0m  \033[1mCOMMAND\033[0m\n"
            "\033[32ma1\033[0m      8  python train.py --epochs 100\n"
            "b22    16  名前 x\n");
}

TEST(Table, CellsCannotMoveTheCursor) {
  Table table({{"A"}, {"B"}});
  table.AddRow({"x\ny\033[2J", "\xff"});
  EXPECT_EQ(table.Render(0, false), "A        B\nx y\xEF\xBF\xBD[2J  \xEF\xBF\xBD\n");
}

TEST(Terminal, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("äöü"), 3);
  EXPECT_EQ(DisplayWidth("名前"), 4);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1);
  EXPECT_EQ(DisplayWidth("\033[1mab\033[0m"), 2);
}

TEST(Terminal, ShortenedTextFitsAndIsWhole) {
  EXPECT_EQ(ShortenToWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(ShortenToWidth("abcdef", 4), "abc…");
  EXPECT_EQ(ShortenToWidth("名前名前", 4), "名…");
  EXPECT_EQ(ShortenToWidth("abc", 0), "");
}

}  // namespace
}  // namespace overcap::cli
