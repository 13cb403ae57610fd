// SPDX-License-Identifier: Apache-2.0
#include "daemon/journal.h"

#include <algorithm>
#include <charconv>

#include "base/crc32c.h"
#include "base/text.h"

namespace overcap {
namespace {

constexpr int kVersion = 1;
constexpr size_t kCrcDigits = 8;
constexpr int64_t kReserveBytes = 1 << 20;  // some 4,000 records of ends of slots and jobs
constexpr char kRecoverHint[] =
    "type 'overcap daemon recover': it keeps the damaged file and all good records";

std::string CrcText(std::string_view json) {
  constexpr char kHex[] = "0123456789abcdef";
  const uint32_t crc = Crc32c(json);
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kHex[(crc >> shift) & 15];
  return text;
}

struct Line {
  Event event;
  int64_t number = 0;  // 0: it has none
};

// `{"n":17,` at the beginning of the JSON.
int64_t NumberOf(std::string_view json) {
  constexpr std::string_view kField = "{\"n\":";
  int64_t number = 0;
  if (json.starts_with(kField))
    (void)std::from_chars(json.data() + kField.size(), json.data() + json.size(), number);
  return number;
}

// One line without its newline.
Result<Line> DecodeLine(std::string_view line) {
  if (line.size() < kCrcDigits + 2 || line[kCrcDigits] != ' ')
    return Fail(ErrorCode::kCorrupt, "not a record");
  uint32_t crc = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + kCrcDigits, crc, 16);
  const std::string_view json = line.substr(kCrcDigits + 1);
  if (error != std::errc() || end != line.data() + kCrcDigits || crc != Crc32c(json)) {
    return Fail(ErrorCode::kCorrupt, "wrong checksum");
  }
  OC_TRY(event, EventFromJson(json));
  return Line{std::move(event), NumberOf(json)};
}

// After a power cut a file system may show NUL bytes where the last write should be.
bool IsUnwritten(std::string_view tail) {
  return tail[0] == '\0' && tail.find_first_not_of('\0') == std::string_view::npos;
}

// `line`: of the first of them.
std::string Encode(const std::vector<Event>& events, int64_t line) {
  std::string text;
  for (const Event& event : events) text += Journal::EncodeRecord(event, line++);
  return text;
}

Event VersionRecord() {
  Event event;
  event.kind = EventKind::kJournal;
  event.version = kVersion;
  return event;
}

// Records that end, stop or free something: a full disk must not keep them out.
bool MayUseReserve(const Event& event) {
  switch (event.kind) {
    case EventKind::kCancel:
    case EventKind::kSlotEnded:
    case EventKind::kRequeued:
    case EventKind::kEnded:
    case EventKind::kRemoved:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string Journal::EncodeRecord(const Event& event, int64_t number) {
  std::string json = EventToJson(event);
  if (number > 0) json.replace(0, 1, StrCat("{\"n\":", number, ","));
  return CrcText(json) + ' ' + json + '\n';
}

Result<void> Journal::Open(const std::function<Result<void>(Event)>& replay) {
  auto read = files_.Read(path_);
  if (!read && read.error().code == ErrorCode::kNotFound) return BeginNew();
  if (!read) return Fail(read.error());
  const std::string& text = *read;
  OC_TRY(good, Replay(text, replay));
  if (good == 0) {
    // Only a crash before the first record was whole is a beginning; anything longer held more than that.
    if (text.size() <= EncodeRecord(VersionRecord()).size()) return BeginNew();
    return Fail(ErrorCode::kCorrupt, StrCat("journal '", path_, "' has no readable beginning"), kRecoverHint);
  }
  OC_TRY(file, files_.OpenAppend(path_));
  file_ = std::move(file);
  if (good < static_cast<int64_t>(text.size())) {
    cut_torn_record_ = true;
    OC_TRY_VOID(file_->TruncateTo(good));
  }
  FillReserve();
  // The file may hold records that a killed engine never made durable: from here on they are believed, so
  // they must be.
  return file_->Sync();
}

Result<void> Journal::BeginNew() {
  OC_TRY_VOID(files_.WriteAtomic(path_, EncodeRecord(VersionRecord()), true));
  OC_TRY(file, files_.OpenAppend(path_));
  file_ = std::move(file);
  records_ = 1;
  FillReserve();
  return {};
}

void Journal::FillReserve() {
  if (!file_ || !can_reserve_) return problem_.reset();
  auto reserved = file_->Reserve(kReserveBytes);
  if (reserved) {
    can_reserve_ = *reserved;
    reserved_ = can_reserve_ ? kReserveBytes : 0;
    return problem_.reset();
  }
  if (!problem_) problem_ = std::move(reserved).error();  // keeps the first error: its text must not change
}

// Makes room for `bytes` more; the reserve is filled up again when half of it is used.
Result<void> Journal::MakeRoom(int64_t bytes, bool from_reserve) {
  if (!can_reserve_ || reserved_ - bytes >= kReserveBytes / 2) return {};
  auto reserved = file_->Reserve(kReserveBytes + bytes);
  if (reserved) {
    can_reserve_ = *reserved;
    reserved_ = can_reserve_ ? kReserveBytes + bytes : 0;
    problem_.reset();
    return {};
  }
  if (!problem_) problem_ = reserved.error();
  if (from_reserve || reserved.error().code != ErrorCode::kUnavailable) return {};
  return Fail(std::move(reserved).error());
}

// Returns how many bytes are good.
Result<int64_t> Journal::Replay(std::string_view text, const std::function<Result<void>(Event)>& replay) {
  size_t at = 0;
  for (int64_t line_number = 1; at < text.size(); ++line_number) {
    const size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos || IsUnwritten(text.substr(at))) return static_cast<int64_t>(at);
    auto line = DecodeLine(text.substr(at, newline - at));
    const int64_t number = line ? line->number : 0;
    Result<Event> event = line ? Result<Event>(std::move(line->event)) : Fail(std::move(line).error());
    if (number > 0 && number != line_number)
      event = Fail(ErrorCode::kCorrupt, StrCat("it was written as line ", number));
    if (event && line_number == 1 && event->kind != EventKind::kJournal)
      event = Fail(ErrorCode::kCorrupt, "no journal");
    if (event && event->version > kVersion) event = Fail(ErrorCode::kCorrupt, "written by a newer overcap");
    Result<void> taken;
    if (!event) {
      taken = Fail(event.error());
    } else if (event->kind != EventKind::kJournal) {
      taken = replay(*std::move(event));
    }
    if (!taken) {
      const Error& error = taken.error();
      return Fail(ErrorCode::kCorrupt,
                  StrCat("journal '", path_, "' is damaged at line ", line_number, ": ", error.message),
                  error.hint.empty() ? kRecoverHint : error.hint);
    }
    ++records_;
    at = newline + 1;
  }
  return static_cast<int64_t>(at);
}

Result<void> Journal::Append(const std::vector<Event>& events) {
  if (broken_) return Fail(ErrorCode::kInternal, StrCat("journal '", path_, "' ends in a torn record"));
  const std::string text = Encode(events, records_ + 1);
  const auto bytes = static_cast<int64_t>(text.size());
  OC_TRY_VOID(MakeRoom(bytes, std::all_of(events.begin(), events.end(), MayUseReserve)));
  const int64_t size = file_->Size();
  auto appended = file_->Append(text);
  if (!appended) {
    // Should even that fail, a torn record stands in the file: nothing may be written behind it.
    broken_ = broken_ || !file_->TruncateTo(size);
    reserved_ = 0;
    if (!problem_) problem_ = appended.error();
    return appended;
  }
  reserved_ = std::max<int64_t>(0, reserved_ - bytes);
  if (!can_reserve_) problem_.reset();
  records_ += static_cast<int64_t>(events.size());
  dirty_ = true;
  return {};
}

Result<void> Journal::Commit() {
  if (broken_) return Fail(ErrorCode::kInternal, StrCat("journal '", path_, "' ends in a torn record"));
  if (!dirty_) return {};
  OC_TRY_VOID(file_->Sync());
  dirty_ = false;
  return {};
}

Result<void> Journal::Rewrite(const std::vector<Event>& events) {
  OC_TRY_VOID(Replace(EncodeRecord(VersionRecord()) + Encode(events, 2)));
  OC_TRY(file, files_.OpenAppend(path_));
  file_ = std::move(file);
  records_ = 1 + static_cast<int64_t>(events.size());
  dirty_ = false;
  reserved_ = 0;
  FillReserve();
  return {};
}

// On a full disk the reserve of the old journal is freed for the new one.
Result<void> Journal::Replace(const std::string& text) {
  auto written = files_.WriteAtomic(path_, text, true);
  const bool fits = static_cast<int64_t>(text.size()) <= reserved_;
  if (written || written.error().code != ErrorCode::kUnavailable || !file_ || !fits) return written;
  OC_TRY_VOID(file_->TruncateTo(file_->Size()));
  reserved_ = 0;
  written = files_.WriteAtomic(path_, text, true);
  if (!written) FillReserve();
  return written;
}

Result<SalvagedJournal> SalvageJournal(std::string_view text) {
  SalvagedJournal salvaged;
  int64_t place = 0;  // its number; for a record without one that of its predecessor
  for (int64_t line_number = 1; !text.empty(); ++line_number) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos || IsUnwritten(text)) break;  // torn: its act was never done
    auto line = DecodeLine(text.substr(0, newline));
    text.remove_prefix(newline + 1);
    if (!line) {
      if (!line.error().hint.empty())
        return Fail(ErrorCode::kCorrupt, StrCat("line ", line_number, ": ", line.error().message),
                    line.error().hint);
      salvaged.bad_lines.emplace_back(line_number, line.error().message);
      continue;
    }
    if (line->event.kind == EventKind::kJournal && line->event.version > kVersion)
      return Fail(ErrorCode::kCorrupt, StrCat("line ", line_number, ": written by a newer overcap"),
                  "use that one");
    if (line->number > 0) place = line->number;
    salvaged.misplaced = salvaged.misplaced || (line->number > 0 && line->number != line_number);
    if (line->event.kind == EventKind::kJournal) {
      salvaged.begun = salvaged.begun || line_number == 1;
      if (line_number > 1) salvaged.doubled_lines.push_back(line_number);
      continue;
    }
    salvaged.records.push_back({std::move(line->event), line_number, line->number, place});
  }
  auto& records = salvaged.records;
  const auto in_order = [](const auto& a, const auto& b) { return a.place < b.place; };
  for (size_t i = 1; i < records.size(); ++i) salvaged.moved += in_order(records[i], records[i - 1]) ? 1 : 0;
  std::stable_sort(records.begin(), records.end(), in_order);
  std::vector<SalvagedJournal::Record> once;
  int64_t expected = 2;  // the first line is the version's
  for (auto& record : records) {
    if (record.number > 0 && !once.empty() && once.back().number == record.number) {
      salvaged.doubled_lines.push_back(record.line);
      continue;
    }
    if (record.number > expected) salvaged.missing += record.number - expected;
    expected = std::max(expected, record.number) + 1;
    once.push_back(std::move(record));
  }
  records = std::move(once);
  return salvaged;
}

}  // namespace overcap
