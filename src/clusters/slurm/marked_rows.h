// SPDX-License-Identifier: Apache-2.0
// Tables from Slurm's programs that no job name can break. A name or comment may hold any byte but NUL:
// blanks, bars, newlines and control characters as well. So each answer is asked for with a mark that nobody
// can know beforehand: fields that only Slurm itself writes end with one control character, the others with
// it and the mark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

constexpr char kFieldEnd = '\x1f';

// Whether `mark` can be used: letters and digits, a letter first, 8 or more (random ones).
bool IsRowMark(std::string_view mark);

struct RowColumns {
  std::vector<std::string_view> plain;  // what Slurm writes: numbers, known words, names that it checks
  std::vector<std::string_view> free;   // what people write
};

// For `squeue -O` and `sinfo -O`: "JobID:\x1f,Name:\x1fMARK".
std::string FormatColumns(const RowColumns& columns, std::string_view mark);

// Reads such a table. For text with the mark behind every field (sacct's --delimiter) `plain` is 0.
class MarkedRows {
 public:
  MarkedRows(std::string_view text, std::string_view mark, size_t plain, size_t free);

  // The next row's fields, plain ones first, as views of the text; false after the last. kCorrupt when the
  // text ends within a row (the program was killed, the disk was full) or is none of such rows.
  Result<bool> Next(std::vector<std::string_view>* fields);
  size_t rows() const { return rows_; }  // read so far

 private:
  std::string_view rest_;
  std::string free_end_;
  size_t plain_, free_, rows_ = 0;
};

}  // namespace overcap
