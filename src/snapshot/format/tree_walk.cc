// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/tree_walk.h"

#include "base/text.h"
#include "snapshot/format/tree_limits.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

bool SameTotals(const TreeTotals& a, const TreeTotals& b) {
  return a.entries == b.entries && a.files == b.files && a.bytes == b.bytes;
}

}  // namespace

TreeWalk::TreeWalk(const Digest& tree, const GetMeta* get) : get_(get) {
  Frame above;
  above.node.level = kTreeLevels + 2;
  above.node.children.push_back({.first = "", .id = tree, .totals = {}});
  frames_.push_back(std::move(above));
}

TreeWalk::Place TreeWalk::place() const {
  if (in_page_) return Place::kEntry;
  return frames_.size() == 1 && frames_.front().at == 1 ? Place::kEnd : Place::kUnread;
}

std::string_view TreeWalk::path() const {
  return in_page_ ? std::string_view(entry().path) : std::string_view(Current().first);
}

std::optional<std::string_view> TreeWalk::Bound() const {
  const Frame& frame = frames_.back();
  if (frame.at + 1 < frame.node.children.size()) return frame.node.children[frame.at + 1].first;
  if (!frame.bound) return std::nullopt;
  return *frame.bound;
}

bool TreeWalk::Covers(const Frame& frame, std::string_view path) const {
  return !PathBefore(path, frame.node.children.front().first) &&
         (!frame.bound || PathBefore(path, *frame.bound));
}

Result<void> TreeWalk::Open() {
  const Digest id = Current().id;
  OC_TRY(bytes, (*get_)(id));
  const int found = TreeLevelOf(bytes);
  auto result = [&]() -> Result<void> {
    if (found < 0) return Fail(ErrorCode::kCorrupt, "it is none");
    if (frames_.size() > 1 && found != level()) return Fail(ErrorCode::kCorrupt, "a level is missing");
    return found == 0 ? OpenPage(bytes) : OpenNode(bytes);
  }();
  if (!result) {
    Error error = std::move(result).error();
    error.message = StrCat("page '", id.Hex(), "' of the tree: ", error.message);
    return Fail(std::move(error));
  }
  return {};
}

// Held to what the node above says. Nothing stands above the root, but that its first path is "".
Result<void> TreeWalk::Fits(std::string_view first, std::string_view last, const TreeTotals& totals) const {
  if (first != Current().first)
    return Fail(ErrorCode::kCorrupt, "it begins with another entry than it should");
  const std::optional<std::string_view> bound = Bound();
  if (bound && !PathBefore(last, *bound)) return Fail(ErrorCode::kCorrupt, "it goes on behind the next one");
  if (frames_.size() > 1 && !SameTotals(totals, Current().totals)) {
    return Fail(ErrorCode::kCorrupt, "it does not hold as much as it should");
  }
  return {};
}

Result<void> TreeWalk::OpenPage(std::string_view bytes) {
  OC_TRY_VOID(DecodeTreePage(bytes, &page_));
  OC_TRY_VOID(Fits(page_.begin()->path, (page_.end() - 1)->path, page_.totals));
  if (frames_.size() == 1) totals_ = page_.totals;
  in_page_ = true;
  at_ = 0;
  return {};
}

Result<void> TreeWalk::OpenNode(std::string_view bytes) {
  OC_TRY(node, DecodeTreeNode(bytes));
  OC_TRY_VOID(Fits(node.children.front().first, node.children.back().first, node.totals));
  if (frames_.size() == 1) totals_ = node.totals;
  Frame frame;
  if (const auto bound = Bound()) frame.bound.emplace(*bound);
  frame.node = std::move(node);
  frames_.push_back(std::move(frame));
  return {};
}

void TreeWalk::Advance() {
  ++frames_.back().at;
  while (frames_.size() > 1 && frames_.back().at == frames_.back().node.children.size()) {
    frames_.pop_back();
    ++frames_.back().at;
  }
}

void TreeWalk::Skip() {
  if (in_page_ && ++at_ < page_.count) return;
  in_page_ = false;
  Advance();
}

void TreeWalk::SkipPage() {
  in_page_ = false;
  Advance();
}

Result<void> TreeWalk::Seek(std::string_view path) {
  const bool here =
      in_page_ && !PathBefore(path, page_.begin()->path) && (!Bound() || PathBefore(path, *Bound()));
  if (!here) {
    in_page_ = false;
    while (frames_.size() > 1 && !Covers(frames_.back(), path)) frames_.pop_back();
    while (!in_page_) {
      frames_.back().at = frames_.back().node.ChildOf(path);
      OC_TRY_VOID(Open());
    }
  }
  at_ = page_.LowerBound(path);
  if (at_ == page_.count) SkipPage();
  return {};
}

}  // namespace overcap
