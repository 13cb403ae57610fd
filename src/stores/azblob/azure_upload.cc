// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_upload.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/digests.h"
#include "stores/object_requests.h"
#include "stores/object_size.h"

namespace overcap {
namespace {

constexpr int64_t kMost = 50'000;
constexpr int64_t kMiB = 1024 * 1024;

std::string Base64OfText(std::string_view text) {
  return Base64Of({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string MarkOf(const AzureUploadPlan& plan) {
  if (plan.identity.empty()) return NewPutMark();
  const std::string text = StrCat(plan.blob, "\n", plan.size, "\n", plan.part_size, "\n", plan.identity);
  return HexOf(Sha256OfText(text)).substr(0, 32);
}

}  // namespace

int64_t AzurePartSize(int64_t size, int64_t usual) {
  const int64_t least = (size / (kMost - 1) + kMiB) / kMiB * kMiB;
  return std::max(usual, least);
}

AzureUpload::AzureUpload(const AzureContainer& container, const AzureUploadPlan& plan, std::string mark)
    : container_(container), plan_(plan), mark_(std::move(mark)) {
  there_.resize(static_cast<size_t>(PartCount(plan.size, plan.part_size)));
  md5s_.resize(there_.size());
}

Result<std::unique_ptr<AzureUpload>> AzureUpload::Begin(const AzureContainer& container,
                                                        const AzureUploadPlan& plan) {
  OC_TRY_VOID(CheckObjectSize(plan.blob.substr(container.prefix().size()), plan.size));
  std::unique_ptr<AzureUpload> upload(new AzureUpload(container, plan, MarkOf(plan)));
  if (!plan.identity.empty()) OC_TRY_VOID(upload->TakeBlocks());
  return upload;
}

// All names of blocks of a blob must have one length.
std::string AzureUpload::BlockId(size_t index) const {
  const std::string number = std::to_string(index);
  return Base64OfText(StrCat(mark_, "-", std::string(8 - number.size(), '0'), number));
}

Result<void> AzureUpload::TakeBlocks() {
  AzureCall call;
  call.blob = plan_.blob;
  call.query = {{"comp", "blocklist"}, {"blocklisttype", "uncommitted"}};
  std::string body;
  OC_TRY(answer, container_.service().Call(call, &body));
  if (answer.problem && answer.problem->code == "BlobNotFound") return {};
  if (answer.problem) return Fail(container_.ErrorOf(*answer.problem, plan_.blob, "write"));
  OC_TRY(blocks, ParseAzureBlocks(body));
  for (size_t i = 0; i < there_.size(); ++i) {
    const std::string id = BlockId(i);
    const int64_t size = std::min(plan_.part_size, plan_.size - static_cast<int64_t>(i) * plan_.part_size);
    there_[i] = std::any_of(blocks.begin(), blocks.end(),
                            [&](const AzureBlock& block) { return block.id == id && block.size == size; });
  }
  return {};
}

bool AzureUpload::Has(int64_t index) const {
  const std::lock_guard lock(mutex_);
  return index >= 0 && static_cast<size_t>(index) < there_.size() && there_[static_cast<size_t>(index)];
}

Result<void> AzureUpload::Part(int64_t index, std::string_view bytes) {
  return PartOfPieces(index, std::span(&bytes, 1));
}

Result<void> AzureUpload::PartOfPieces(int64_t index, std::span<const std::string_view> pieces) {
  const auto size = static_cast<size_t>(SizeOfPieces(pieces));
  OC_TRY_VOID(ValidPart(plan_.blob, plan_.size, plan_.part_size, index, size));
  const auto md5 = Md5OfPieces(pieces);
  OC_TRY_VOID(PutBlock(index, pieces, Base64Of(md5)));
  const std::lock_guard lock(mutex_);
  there_[static_cast<size_t>(index)] = true;
  md5s_[static_cast<size_t>(index)] = BytesAsText(md5);
  return {};
}

Result<void> AzureUpload::PutBlock(int64_t index, std::span<const std::string_view> pieces,
                                   const std::string& md5) const {
  AzureCall call;
  call.method = "PUT";
  call.blob = plan_.blob;
  call.query = {{"comp", "block"}, {"blockid", BlockId(static_cast<size_t>(index))}};
  call.headers = {{"content-md5", md5}};
  call.body = pieces;
  call.has_body = true;
  std::string body;
  OC_TRY_VOID(container_.Must(call, "write", &body));
  return {};
}

// Blocks cannot be taken back, but one of another size is not gone on with.
void AzureUpload::Discard() {
  const std::lock_guard lock(mutex_);
  const std::string_view byte = "x", bytes = "xx";
  for (size_t i = 0; i < there_.size(); ++i) {
    const bool single = plan_.size - static_cast<int64_t>(i) * plan_.part_size == 1;
    const std::string_view& other = single ? bytes : byte;
    if (!there_[i]) continue;
    if (!PutBlock(static_cast<int64_t>(i), std::span(&other, 1), Base64Of(Md5OfPieces(std::span(&other, 1)))))
      return;
  }
}

// "" when some blocks came with an upload that was cut off: their MD5s are not known.
std::string AzureUpload::PartsText() const {
  std::vector<std::string_view> all;
  for (const std::string& md5 : md5s_) {
    if (md5.empty()) return "";
    all.emplace_back(md5);
  }
  return StrCat(HexOf(Md5OfPieces(all)), "-", plan_.part_size);
}

// Done a second time it finds the blocks committed, and does the same again.
Result<void> AzureUpload::Finish() {
  const std::lock_guard lock(mutex_);
  const auto missing = std::find(there_.begin(), there_.end(), false);
  if (missing != there_.end())
    return Fail(ErrorCode::kUsage,
                StrCat("part ", missing - there_.begin(), " of ", Quoted(plan_.blob, 200), " is missing"));
  std::string list = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
  for (size_t i = 0; i < there_.size(); ++i) list += StrCat("<Latest>", BlockId(i), "</Latest>");
  list += "</BlockList>";
  const std::string_view piece = list;
  AzureCall call;
  call.method = "PUT";
  call.blob = plan_.blob;
  call.query = {{"comp", "blocklist"}};
  call.headers = {{"content-type", "application/xml"},
                  {"x-ms-blob-content-type", "application/octet-stream"},
                  {"x-ms-meta-overcap_put", mark_}};
  if (const std::string parts = PartsText(); !parts.empty())
    call.headers.push_back({"x-ms-meta-overcap_parts", parts});
  if (plan_.mode == PutMode::kCreate) call.headers.push_back({"if-none-match", "*"});
  call.body = std::span(&piece, 1);
  call.has_body = true;
  std::string body;
  OC_TRY(answer, container_.service().Call(call, &body));
  if (!answer.problem) return {};
  if (plan_.mode == PutMode::kCreate && IsConflict(*answer.problem))
    return container_.SettleConflict(plan_.blob, mark_);
  return Fail(container_.ErrorOf(*answer.problem, plan_.blob, "write"));
}

}  // namespace overcap
