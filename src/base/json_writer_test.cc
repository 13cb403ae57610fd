// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <cmath>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace overcap {
namespace {

TEST(JsonWriterTest, CommasStandWhereTheyBelong) {
  JsonWriter out;
  out.BeginObject()
      .Field("a", 1)
      .Field("b", "x")
      .Key("c")
      .BeginArray()
      .Int(1)
      .BeginObject()
      .EndObject()
      .Null()
      .EndArray();
  out.Field("d", true).Key("e").Raw("{\"f\":2}").EndObject();
  EXPECT_EQ(out.Text(), "{\"a\":1,\"b\":\"x\",\"c\":[1,{},null],\"d\":true,\"e\":{\"f\":2}}");
}

TEST(JsonWriterTest, EveryByteComesBackOrIsReplaced) {
  std::string text;
  for (int byte = 0; byte < 128; ++byte) text += static_cast<char>(byte);
  text += "gr\xC3\xBC";
  EXPECT_EQ(nlohmann::json::parse(JsonWriter().String(text).Text()).get<std::string>(), text);
  EXPECT_EQ(JsonWriter().String("\xff").Text(), "\"\xEF\xBF\xBD\"");
}

TEST(JsonWriterTest, WhatIsNoNumberIsNull) {
  EXPECT_EQ(JsonWriter().Double(NAN).Text(), "null");
  EXPECT_EQ(JsonWriter().Double(0.25).Text(), "0.25");
}

}  // namespace
}  // namespace overcap
