// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_listing.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/http_date.h"
#include "stores/object_requests.h"
#include "stores/xml_tree.h"

namespace overcap {
namespace {

tl::unexpected<Error> Odd(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, StrCat("the service's list is not as it should be: ", what));
}

Result<XmlElement> Root(std::string_view xml, std::string_view name) {
  OC_TRY(root, ParseXml(xml));
  if (root.name != name) return Odd(StrCat("it is ", Quoted(root.name), " instead of ", Quoted(name)));
  return root;
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// What is no escape stays as it is.
std::string UrlDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 && HexValue(text[i + 2]) >= 0;
    if (!escape) {
      out.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    out.push_back(static_cast<char>(HexValue(text[i + 1]) << 4 | HexValue(text[i + 2])));
    i += 2;
  }
  return out;
}

struct KeyText {
  bool encoded = false;
  explicit KeyText(const XmlElement& root) : encoded(root.TextOf("EncodingType") == "url") {}
  std::string Of(std::string_view text) const { return encoded ? UrlDecoded(text) : std::string(text); }
};

Result<int64_t> NumberIn(const XmlElement& element, std::string_view name) {
  const auto number = ParseInt(element.TextOf(name));
  if (!number || *number < 0) return Odd(StrCat(Quoted(name), " is no number"));
  return static_cast<int64_t>(*number);
}

}  // namespace

std::string Md5OfEtag(std::string_view etag) {
  const std::string_view inner = WithoutQuotes(etag);
  const bool hex = std::all_of(inner.begin(), inner.end(), [](char c) { return HexValue(c) >= 0; });
  if (inner.size() != 32 || !hex) return "";
  std::string md5(inner);
  for (char& c : md5)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c + 32);
  return md5;
}

Result<S3ListPage> ParseS3List(std::string_view xml) {
  OC_TRY(root, Root(xml, "ListBucketResult"));
  const KeyText text(root);
  S3ListPage page;
  page.more = root.TextOf("IsTruncated") == "true";
  for (const XmlElement& each : root.children) {
    if (each.name != "Contents") continue;
    StoredObjectInfo object;
    object.key = text.Of(each.TextOf("Key"));
    if (object.key.empty()) return Odd("an object has no name");
    OC_TRY(size, NumberIn(each, "Size"));
    object.size = size;
    object.modified_us = ParseIsoTime(each.TextOf("LastModified")).value_or(0);
    object.version = WithoutQuotes(each.TextOf("ETag"));
    object.md5 = Md5OfEtag(object.version);
    page.objects.push_back(std::move(object));
  }
  if (page.more && page.objects.empty()) return Odd("it goes on with nothing");
  return page;
}

Result<S3UploadPage> ParseS3Uploads(std::string_view xml) {
  OC_TRY(root, Root(xml, "ListMultipartUploadsResult"));
  const KeyText text(root);
  S3UploadPage page;
  for (const XmlElement& each : root.children) {
    if (each.name != "Upload") continue;
    S3PendingUpload upload{text.Of(each.TextOf("Key")), std::string(each.TextOf("UploadId")),
                           ParseIsoTime(each.TextOf("Initiated")).value_or(0)};
    if (upload.key.empty() || upload.id.empty()) return Odd("an upload has no name");
    page.uploads.push_back(std::move(upload));
  }
  if (root.TextOf("IsTruncated") == "true") {
    page.next_key = text.Of(root.TextOf("NextKeyMarker"));
    page.next_id = root.TextOf("NextUploadIdMarker");
    if (page.next_key.empty() || page.uploads.empty()) return Odd("it goes on with nothing");
  }
  return page;
}

Result<S3PartPage> ParseS3Parts(std::string_view xml) {
  OC_TRY(root, Root(xml, "ListPartsResult"));
  S3PartPage page;
  for (const XmlElement& each : root.children) {
    if (each.name != "Part") continue;
    OC_TRY(number, NumberIn(each, "PartNumber"));
    OC_TRY(size, NumberIn(each, "Size"));
    if (number < 1 || number > 10'000) return Odd("a part has no number of 1 to 10000");
    page.parts.push_back({static_cast<int>(number), size, std::string(WithoutQuotes(each.TextOf("ETag")))});
  }
  if (root.TextOf("IsTruncated") == "true") {
    OC_TRY(next, NumberIn(root, "NextPartNumberMarker"));
    if (page.parts.empty() || next < 1 || next > 10'000) return Odd("it goes on with nothing");
    page.next = static_cast<int>(next);
  }
  return page;
}

}  // namespace overcap
