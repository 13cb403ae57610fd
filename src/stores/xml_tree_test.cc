// SPDX-License-Identifier: Apache-2.0
#include "stores/xml_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

TEST(XmlTree, ReadsElementsAndText) {
  const auto root = ParseXml(
      "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- x --><List xmlns='http://s3/'>\n"
      "<Name>a&amp;b&lt;c&#x41;&#228;</Name><Empty/><C><Key>1</Key></C><C ><Key>2<!-- - --></Key ></C>"
      "<D><![CDATA[<raw>&]]></D></List>\n");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->name, "List");
  EXPECT_EQ(root->TextOf("Name"), "a&b<cA\xc3\xa4");
  EXPECT_EQ(root->TextOf("Empty"), "");
  EXPECT_EQ(root->TextOf("none"), "");
  EXPECT_EQ(root->TextOf("D"), "<raw>&");
  EXPECT_EQ(root->children.size(), 5u);
  EXPECT_EQ(root->children[3].TextOf("Key"), "2");
}

TEST(XmlTree, RefusesWhatIsOdd) {
  for (const char* text : {"",
                           "text",
                           "<a>",
                           "<a></b>",
                           "<a><b></a></b>",
                           "<a>&nope;</a>",
                           "<a>&",
                           "<a>&#0;</a>",
                           "<a>&#xd800;</a>",
                           "<a>&#99999999;</a>",
                           "<a x></a>",
                           "<a x=1/>",
                           "<a x=\"1></a>",
                           "<a/><b/>",
                           "<a/>x",
                           "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
                           "<html><br></html>",
                           "< a/>",
                           "<a>&#;</a>",
                           "<a>&#x;</a>"})
    EXPECT_FALSE(ParseXml(text)) << text;
}

TEST(XmlTree, RefusesEndlessNesting) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_FALSE(ParseXml(deep));
}

RC_GTEST_PROP(XmlTree, EscapedTextComesBack, (const std::string& text)) {
  const auto root = ParseXml(StrCat("<a>", XmlEscape(text), "</a>"));
  RC_ASSERT(root && root->text == text);
}

}  // namespace
}  // namespace overcap
