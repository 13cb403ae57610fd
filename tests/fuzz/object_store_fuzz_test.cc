// SPDX-License-Identifier: Apache-2.0
// Whatever XML an object store answers with, it is read or refused.
#include "inputs.h"
#include "stores/azblob/azure_listing.h"
#include "stores/azblob/azure_problem.h"
#include "stores/part_journal.h"
#include "stores/s3/s3_listing.h"
#include "stores/s3/s3_parts_checksum.h"
#include "stores/s3/s3_problem.h"
#include "stores/xml_tree.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {
    "<",    ">",         "</",  "/>",           "&amp;", "&#x41;", "&#0;", "<!--",
    "-->",  "<![CDATA[", "]]>", "<!DOCTYPE a>", "<Key>", "</Key>", "-1",   "99999999999999999999",
    "true", "%41"};

const std::string kS3List =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult "
    "xmlns=\"http://s3/\"><Name>b</Name><IsTruncated>true"
    "</IsTruncated><EncodingType>url</EncodingType><Contents><Key>a%20b</"
    "Key><LastModified>2026-11-15T19:10:27.000Z"
    "</LastModified><ETag>&quot;5d41402abc4b2a76b9719d911017c592&quot;</ETag><Size>5</Size></"
    "Contents><Contents><Key>c"
    "</Key><Size>0</Size></Contents></ListBucketResult>";

TEST(ObjectStoreFuzz, TreesAreReadOrRefused) {
  ForEachInput(Mutator({kS3List, "<a b='c'>x&lt;<d/>y</a>"}, kWords, 1).Gently(),
               [](const std::string& text) {
                 const auto root = ParseXml(text);
                 if (!root) return ExpectOneLine(root.error(), ErrorCode::kCorrupt);
                 EXPECT_FALSE(root->name.empty());
                 return true;
               });
}

TEST(ObjectStoreFuzz, ListsOfS3AreReadOrRefused) {
  ForEachInput(Mutator({kS3List}, kWords, 2).Gently(), [](const std::string& text) {
    const auto page = ParseS3List(text);
    if (!page) return ExpectOneLine(page.error(), ErrorCode::kCorrupt);
    for (const StoredObjectInfo& object : page->objects) EXPECT_TRUE(!object.key.empty() && object.size >= 0);
    return true;
  });
}

TEST(ObjectStoreFuzz, UploadsAndPartsAreReadOrRefused) {
  ForEachInput(Mutator({"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</"
                        "NextKeyMarker><Upload><Key>k"
                        "</Key><UploadId>u</UploadId><Initiated>2026-11-15T19:10:27Z</Initiated></Upload></"
                        "ListMultipartUploadsResult>",
                        "<ListPartsResult><IsTruncated>false</IsTruncated><Part><PartNumber>1</"
                        "PartNumber><Size>5</Size><ETag>e</ETag>"
                        "</Part></ListPartsResult>"},
                       kWords, 3)
                   .Gently(),
               [](const std::string& text) {
                 const auto uploads = ParseS3Uploads(text);
                 const auto parts = ParseS3Parts(text);
                 if (!uploads) ExpectOneLine(uploads.error(), ErrorCode::kCorrupt);
                 if (!parts) ExpectOneLine(parts.error(), ErrorCode::kCorrupt);
                 const std::vector<S3StoredPart> all = parts ? parts->parts : std::vector<S3StoredPart>();
                 for (const S3StoredPart& part : all) EXPECT_TRUE(part.number >= 1 && part.size >= 0);
                 return uploads || parts;
               });
}

TEST(ObjectStoreFuzz, ListsOfAzureAreReadOrRefused) {
  ForEachInput(
      Mutator(
          {"<EnumerationResults><Blobs><Blob><Name>a</Name><Properties><Content-Length>5</Content-Length>"
           "<Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified><Etag>0x8D</Etag><Content-MD5>"
           "XUFAKrxLKna5cZ2REBfFkg==</Content-MD5></Properties></Blob></Blobs><NextMarker>m</NextMarker>"
           "</EnumerationResults>",
           "<BlockList><UncommittedBlocks><Block><Name>aWQ=</Name><Size>5</Size></Block></UncommittedBlocks>"
           "</BlockList>"},
          kWords, 4)
          .Gently(),
      [](const std::string& text) {
        const auto page = ParseAzureList(text);
        const auto blocks = ParseAzureBlocks(text);
        if (!page) ExpectOneLine(page.error(), ErrorCode::kCorrupt);
        if (!blocks) ExpectOneLine(blocks.error(), ErrorCode::kCorrupt);
        return page || blocks;
      });
}

TEST(ObjectStoreFuzz, ChecksumsOfOthersAreOnesOrNone) {
  ForEachInput(Mutator({"\"d41d8cd98f00b204e9800998ecf8427e-12\"",
                        "1B2M2Y8AsgTpgAmY7PhCfg==", "atime:1/md5:d41d8cd98f00b204e9800998ecf8427e/mode:3"},
                       kWords, 6),
               [](const std::string& text) {
                 const auto tag = ParsePartsTag(text);
                 EXPECT_TRUE(!tag || (tag->md5.size() == 32 && tag->parts >= 1 && tag->parts <= 10'000));
                 for (const int64_t part : LikelyPartSizes(100'000'000, tag ? tag->parts : 7))
                   EXPECT_EQ(PartCount(100'000'000, part), tag ? tag->parts : 7);
                 HttpResponse head;
                 head.headers = {{"x-amz-meta-md5chksum", text}, {"x-amz-meta-s3cmd-attrs", text}};
                 const std::string md5 = Md5OfOthers(head);
                 EXPECT_TRUE(md5.empty() || md5.size() == 32);
                 return tag || !md5.empty();
               });
}

TEST(ObjectStoreFuzz, JournalsOfPartsAreReadAsFarAsTheyAreOnes) {
  const PartJournal journal{100, 10};
  ForEachInput(Mutator({journal.Head() + "0 00000000\n9 ffffffff\n3 12345678\n"}, kWords, 7),
               [&](const std::string& text) {
                 size_t good = 0;
                 const auto lines = journal.Parse(text, &good);
                 EXPECT_LE(good, text.size());
                 for (const auto& line : lines) EXPECT_TRUE(line.part >= 0 && line.part < 10);
                 return good > 0;
               });
}

TEST(ObjectStoreFuzz, RefusalsAlwaysBecomeOneLine) {
  ForEachInput(Mutator({"<Error><Code>NoSuchKey</Code><Message>m</Message><Region>r</Region></Error>",
                        "<html><p></html>", ""},
                       kWords, 5),
               [](const std::string& text) {
                 HttpResponse head;
                 for (const int status : {301, 400, 403, 404, 409, 412, 500, 503}) {
                   head.status = status;
                   const Error s3 =
                       S3ErrorOf(ReadS3Problem(head, text), {"s3://b", "b", "r", "http://e", "k", "read"});
                   const Error azure = AzureErrorOf(ReadAzureProblem(head, text),
                                                    {"az://a/c", "a", "c", "http://e", "k", "read"});
                   ExpectOneLine(s3, s3.code);
                   ExpectOneLine(azure, azure.code);
                 }
                 return true;
               });
}

}  // namespace
}  // namespace overcap
