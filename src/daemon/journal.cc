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
constexpr int64_t kReserveBytes = 1 << 20;  // some 4,000 records of slots and jobs that end
constexpr char kRecoverHint[] =
    "type 'overcap daemon recover': it keeps the damaged file and all good records";

std::string CrcText(std::string_view json) {
  constexpr char kHex[] = "0123456789abcdef";
  const uint32_t crc = Crc32c(json);
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kHex[(crc >> shift) & 15];
  return text;
}

// One line without its newline.
Result<Event> DecodeLine(std::string_view line) {
  if (line.size() < kCrcDigits + 2 || line[kCrcDigits] != ' ')
    return Fail(ErrorCode::kCorrupt, "not a record");
  uint32_t crc = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + kCrcDigits, crc, 16);
  const std::string_view json = line.substr(kCrcDigits + 1);
  if (error != std::errc() || end != line.data() + kCrcDigits || crc != Crc32c(json)) {
    return Fail(ErrorCode::kCorrupt, "wrong checksum");
  }
  return EventFromJson(json);
}

// After a power cut a file system may show NUL bytes where the last write should be.
bool IsUnwritten(std::string_view tail) {
  return tail[0] == '\0' && tail.find_first_not_of('\0') == std::string_view::npos;
}

std::string Encode(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) text += Journal::EncodeRecord(event);
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

std::string Journal::EncodeRecord(const Event& event) {
  const std::string json = EventToJson(event);
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
  if (!problem_) problem_ = std::move(reserved).error();  // the first of them: what it says stays the same
}

// Room for so many bytes; the reserve is filled up again when half of it is used.
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
    auto event = DecodeLine(text.substr(at, newline - at));
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
  const std::string text = Encode(events);
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
  OC_TRY_VOID(Replace(EncodeRecord(VersionRecord()) + Encode(events)));
  OC_TRY(file, files_.OpenAppend(path_));
  file_ = std::move(file);
  records_ = 1 + static_cast<int64_t>(events.size());
  dirty_ = false;
  reserved_ = 0;
  FillReserve();
  return {};
}

// On a full disk the new journal is written where the reserve of the old one was.
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

SalvagedJournal SalvageJournal(std::string_view text) {
  SalvagedJournal salvaged;
  for (int64_t line_number = 1; !text.empty(); ++line_number) {
    const size_t newline = text.find('\n');
    auto event = DecodeLine(text.substr(0, newline));
    if (!event) salvaged.bad_lines.push_back(line_number);
    if (event && event->kind != EventKind::kJournal) salvaged.events.push_back(*std::move(event));
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  return salvaged;
}

}  // namespace overcap
