// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/seal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/text.h"
#include "snapshot/format/aes_gcm.h"

namespace overcap {
namespace {

constexpr ScryptCost kCheap{16, 1, 1};

std::string Hex(std::string_view bytes) {
  std::string out;
  char digits[3];
  for (const char c : bytes) {
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    out += digits;
  }
  return out;
}

// 00 01 02 ...
std::array<uint8_t, 32> Counting(uint8_t first) {
  std::array<uint8_t, 32> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

const SecretKey kMaster(Counting(0));

TEST(AesGcm, AgreesWithThePublishedVectors) {
  // NIST / McGrew and Viega, test cases 13 to 15 with 256 bit keys.
  const SecretKey zero;
  std::string out;
  ASSERT_TRUE(GcmSeal(zero, GcmNonce{}, "", "", &out));
  EXPECT_EQ(Hex(out), "530f8afbc74536b9a963b4f1c4cb738b");
  out.clear();
  ASSERT_TRUE(GcmSeal(zero, GcmNonce{}, "", std::string(16, '\0'), &out));
  EXPECT_EQ(Hex(out), "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(AesGcm, HmacAgreesWithThePublishedVector) {
  // RFC 4231 has no key of 32 bytes; this one is 20 bytes 0x0b filled up with the zeros that HMAC itself
  // adds.
  std::array<uint8_t, 32> key{};
  std::fill(key.begin(), key.begin() + 20, 0x0b);
  const SecretKey out = HmacSha256(SecretKey(key), "Hi There");
  EXPECT_EQ(Hex({reinterpret_cast<const char*>(out.bytes().data()), 32}),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST(Encryption, OpensWithItsSecretOnly) {
  const Result<NewEncryption> made = MakeEncryption("secret", "id", kCheap);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->config.salt.size(), 32u);
  EXPECT_EQ(made->config.master.size(), 60u);
  const Result<SecretKey> opened = OpenEncryption(made->config, "secret", "id");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->bytes(), made->master.bytes());
  EXPECT_EQ(OpenEncryption(made->config, "Secret", "id").error().code, ErrorCode::kDenied);
  EXPECT_EQ(OpenEncryption(made->config, "secret", "other id").error().code, ErrorCode::kDenied);
  EXPECT_EQ(MakeEncryption("", "id", kCheap).error().code, ErrorCode::kUsage);
}

TEST(Encryption, TheSecretMayBeAnyBytes) {
  const std::string secret("\0key\xff\nfile", 10);
  const Result<NewEncryption> made = MakeEncryption(secret, "id", kCheap);
  EXPECT_TRUE(OpenEncryption(made->config, secret, "id"));
  EXPECT_FALSE(OpenEncryption(made->config, std::string(1, '\0'), "id"));
}

TEST(Encryption, EachHasAKeyOfItsOwn) {
  const Result<NewEncryption> a = MakeEncryption("secret", "id", kCheap),
                              b = MakeEncryption("secret", "id", kCheap);
  EXPECT_NE(a->master.bytes(), b->master.bytes());
  EXPECT_NE(a->config.salt, b->config.salt);
  EXPECT_NE(a->config.master.substr(0, 12), b->config.master.substr(0, 12));
}

// A repository of somebody else must not make us use all memory or time.
TEST(Encryption, CostsPastTheLimitsAreRefusedAtOnce) {
  EncryptionConfig config = MakeEncryption("secret", "id", kCheap)->config;
  const auto code = [&](int64_t n, int64_t r, int64_t p) {
    config.n = n, config.r = r, config.p = p;
    return OpenEncryption(config, "secret", "id").error().code;
  };
  EXPECT_EQ(code(int64_t{1} << 23, 1, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(1 << 22, 32, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(16, 33, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(16, 1, 17), ErrorCode::kUsage);
  EXPECT_EQ(code(17, 1, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(0, 1, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(1, 1, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(16, 0, 1), ErrorCode::kUsage);
  EXPECT_EQ(code(INT64_MAX, INT64_MAX, INT64_MAX), ErrorCode::kUsage);
  config.master.pop_back();
  EXPECT_EQ(code(16, 1, 1), ErrorCode::kCorrupt);
}

TEST(PackSeal, GivesBackWhatWasSealed) {
  EXPECT_TRUE(rc::check([](const std::string& plain, uint64_t block, const std::string& before) {
    const PackSeal seal(kMaster, Counting(7), "head");
    std::string sealed = before;
    RC_ASSERT(seal.Seal(block, plain, &sealed).has_value());
    RC_ASSERT(sealed.substr(0, before.size()) == before);
    sealed.erase(0, before.size());
    RC_ASSERT(sealed.size() == plain.size() + PackSeal::kOverhead);
    RC_ASSERT(seal.Open(block, sealed).value() == plain);
  }));
}

TEST(PackSeal, AnyChangeIsFound) {
  const PackSeal seal(kMaster, Counting(7), "head");
  std::string sealed;
  ASSERT_TRUE(seal.Seal(3, "some plain text", &sealed));
  const auto code = [](const Result<std::string>& opened) {
    return opened ? ErrorCode::kInternal : opened.error().code;
  };
  for (size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string bad = sealed;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(code(seal.Open(3, bad)), ErrorCode::kCorrupt);
  }
  for (size_t size = 0; size < sealed.size(); ++size)
    EXPECT_EQ(code(seal.Open(3, sealed.substr(0, size))), ErrorCode::kCorrupt);
  EXPECT_EQ(code(seal.Open(4, sealed)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(seal.Open(PackSeal::kFooter, sealed)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(PackSeal(kMaster, Counting(8), "head").Open(3, sealed)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(PackSeal(kMaster, Counting(7), "Head").Open(3, sealed)), ErrorCode::kCorrupt);
  EXPECT_EQ(code(PackSeal(SecretKey(Counting(1)), Counting(7), "head").Open(3, sealed)), ErrorCode::kCorrupt);
}

TEST(SealObject, AnyChangeIsFound) {
  const Result<std::string> sealed = SealObject(kMaster, "id", "index", "plain");
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->size(), 8 + 32 + 5 + 16u);
  EXPECT_EQ(*OpenObject(kMaster, "id", "index", *sealed), "plain");
  for (size_t bit = 0; bit < sealed->size() * 8; ++bit) {
    std::string bad = *sealed;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(OpenObject(kMaster, "id", "index", bad).error().code, ErrorCode::kCorrupt);
  }
  for (size_t size = 0; size < sealed->size(); ++size)
    EXPECT_EQ(OpenObject(kMaster, "id", "index", sealed->substr(0, size)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(OpenObject(kMaster, "id", "snapshots", *sealed).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(OpenObject(kMaster, "id2", "index", *sealed).error().code, ErrorCode::kCorrupt);
}

std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

// The vectors of docs/formats/snapshot.md, made with another program.
TEST(SealVectors, PacksAndObjects) {
  const std::string salt = FromHex("202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f");
  const PackSeal seal(kMaster, Counting(0x20), std::string("ocpack2\nd\x01") + std::string(22, '\0') + salt);
  std::string block, footer;
  ASSERT_TRUE(seal.Seal(1, "hello", &block));
  ASSERT_TRUE(seal.Seal(PackSeal::kFooter, "hello", &footer));
  EXPECT_EQ(Hex(block), "60b4f190491269b0ad07145baa6e634b8f22f62883");
  EXPECT_EQ(Hex(footer), "d0a229fe50854f328642e0b4defb01150754dfc741");
  const std::string object = FromHex(
      "6f637365616c320a202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3fd5a18107e17bafae"
      "8a031337b680f583bae7d13220");
  EXPECT_EQ(OpenObject(kMaster, "00112233445566778899aabbccddeeff", "index", object).value_or(""), "hello");
}

TEST(SealVectors, MasterKey) {
  EncryptionConfig config{16, 1, 1, "", ""};
  config.salt = FromHex("202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f");
  config.master = FromHex(
      "404142434445464748494a4b0c9e2b0d3e995d9eea6245a0a97379fc1032e5dbca4aa46d3e73b3cb603a47ed6e0364c0"
      "62f4f628e5720718e46b5c62");
  const Result<SecretKey> master =
      OpenEncryption(config, "correct horse", "00112233445566778899aabbccddeeff");
  ASSERT_TRUE(master) << master.error().message;
  EXPECT_EQ(master->bytes(), kMaster.bytes());
}

}  // namespace
}  // namespace overcap
