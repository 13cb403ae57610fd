// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_listing.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"
#include "stores/object_requests.h"
#include "stores/xml_tree.h"

namespace overcap {
namespace {

tl::unexpected<Error> Odd(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, StrCat("the service's list is not as it should be: ", what));
}

Result<StoredObjectInfo> ReadBlob(const XmlElement& blob) {
  StoredObjectInfo object;
  object.key = blob.TextOf("Name");
  const XmlElement* properties = blob.Child("Properties");
  if (object.key.empty() || properties == nullptr) return Odd("a blob has no name or no properties");
  const auto size = ParseInt(properties->TextOf("Content-Length"));
  if (!size || *size < 0) return Odd("a blob has no size");
  object.size = *size;
  object.modified_us = ParseHttpDate(properties->TextOf("Last-Modified")).value_or(0);
  object.version = WithoutQuotes(properties->TextOf("Etag"));
  object.md5 = Md5OfBase64(properties->TextOf("Content-MD5"));
  return object;
}

}  // namespace

std::string Md5OfBase64(std::string_view text) {
  const auto bytes = Base64Bytes(text);
  if (!bytes || bytes->size() != 16) return "";
  return HexOf({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
}

Result<AzureListPage> ParseAzureList(std::string_view xml) {
  OC_TRY(root, ParseXml(xml));
  const XmlElement* blobs = root.Child("Blobs");
  if (root.name != "EnumerationResults" || blobs == nullptr) return Odd("it is no list of blobs");
  AzureListPage page;
  page.marker = root.TextOf("NextMarker");
  for (const XmlElement& blob : blobs->children) {
    if (blob.name != "Blob") continue;
    OC_TRY(object, ReadBlob(blob));
    page.objects.push_back(std::move(object));
  }
  std::sort(page.objects.begin(), page.objects.end(),
            [](const StoredObjectInfo& a, const StoredObjectInfo& b) { return a.key < b.key; });
  return page;
}

Result<std::vector<AzureBlock>> ParseAzureBlocks(std::string_view xml) {
  OC_TRY(root, ParseXml(xml));
  if (root.name != "BlockList") return Odd("it is no list of blocks");
  std::vector<AzureBlock> blocks;
  const XmlElement* list = root.Child("UncommittedBlocks");
  if (list == nullptr) return blocks;
  for (const XmlElement& each : list->children) {
    if (each.name != "Block") continue;
    const auto size = ParseInt(each.TextOf("Size"));
    if (!size || *size < 0 || each.TextOf("Name").empty()) return Odd("a block has no name or no size");
    blocks.push_back({std::string(each.TextOf("Name")), *size});
  }
  return blocks;
}

}  // namespace overcap
