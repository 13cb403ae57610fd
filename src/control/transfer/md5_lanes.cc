// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/md5_lanes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "control/transfer/md5.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace overcap {
namespace {

constexpr size_t kBlock = 64;
constexpr size_t kAtOnce = 1024;  // blocks, before others are looked for that have come meanwhile

// clang-format off
constexpr uint32_t kSines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
// clang-format on
constexpr int kTurns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// Which word of the block a step takes.
constexpr int WordOf(int step) {
  constexpr int kFactor[4] = {1, 5, 3, 7}, kFirst[4] = {0, 1, 5, 0};
  return (kFactor[step / 16] * step + kFirst[step / 16]) % 16;
}

// By pointers: vectors as arguments would depend on what the caller is compiled for.
template <typename Word>
inline __attribute__((always_inline)) void AddMixed(int round, const Word& b, const Word& c, const Word& d,
                                                    Word* sum) {
  switch (round) {
    case 0:
      *sum += d ^ (b & (c ^ d));
      break;
    case 1:
      *sum += c ^ (d & (b ^ c));
      break;
    case 2:
      *sum += b ^ c ^ d;
      break;
    default:
      *sum += c ^ (b | ~d);
  }
}

// The 64 steps, for one state or, with vectors, for several.
template <typename Word>
inline __attribute__((always_inline)) void AddBlock(const Word* words, Word* state) {
  Word a = state[0], b = state[1], c = state[2], d = state[3];
#pragma GCC unroll 64
  for (int step = 0; step < 64; ++step) {
    const int turn = kTurns[step / 16][step % 4];
    Word sum = a + words[WordOf(step)] + kSines[step];
    AddMixed(step / 16, b, c, d, &sum);
    a = d;
    d = c;
    c = b;
    b += (sum << turn) | (sum >> (32 - turn));
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

void AddPlain(uint32_t* state, const uint8_t* at, size_t blocks) {
  for (; blocks > 0; --blocks, at += kBlock) {
    uint32_t words[16];
    std::memcpy(words, at, kBlock);  // both are little endian
    AddBlock(words, state);
  }
}

#if defined(__x86_64__)
using Eight = uint32_t __attribute__((vector_size(32)));

// Eight words of each of eight contents become the first words of all, the second words of all, ...
__attribute__((target("avx2"), always_inline)) inline void Turn(const uint8_t* const* at, size_t offset,
                                                                Eight* out) {
  __m256i row[8], half[8];
  for (int i = 0; i < 8; ++i) row[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at[i] + offset));
  for (int i = 0; i < 4; ++i) {
    half[2 * i] = _mm256_unpacklo_epi32(row[2 * i], row[2 * i + 1]);
    half[2 * i + 1] = _mm256_unpackhi_epi32(row[2 * i], row[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    row[4 * i] = _mm256_unpacklo_epi64(half[4 * i], half[4 * i + 2]);
    row[4 * i + 1] = _mm256_unpackhi_epi64(half[4 * i], half[4 * i + 2]);
    row[4 * i + 2] = _mm256_unpacklo_epi64(half[4 * i + 1], half[4 * i + 3]);
    row[4 * i + 3] = _mm256_unpackhi_epi64(half[4 * i + 1], half[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    out[i] = reinterpret_cast<Eight>(_mm256_permute2x128_si256(row[i], row[i + 4], 0x20));
    out[i + 4] = reinterpret_cast<Eight>(_mm256_permute2x128_si256(row[i], row[i + 4], 0x31));
  }
}

__attribute__((target("avx2"), always_inline)) inline void AddToEight(uint32_t* const* states,
                                                                      const uint8_t* const* at,
                                                                      size_t blocks) {
  Eight state[4], words[16];
  for (int i = 0; i < 4; ++i)
    for (int lane = 0; lane < 8; ++lane) state[i][lane] = states[lane][i];
  for (size_t block = 0; block < blocks; ++block) {
    Turn(at, block * kBlock, words);
    Turn(at, block * kBlock + 32, words + 8);
    AddBlock(words, state);
  }
  for (int i = 0; i < 4; ++i)
    for (int lane = 0; lane < 8; ++lane) states[lane][i] = state[i][lane];
}

__attribute__((target("avx2"))) void AddEightAvx2(uint32_t* const* states, const uint8_t* const* at,
                                                  size_t blocks) {
  AddToEight(states, at, blocks);
}

// Turns and choices are one instruction each here.
__attribute__((target("avx2,avx512f,avx512vl"))) void AddEightAvx512(uint32_t* const* states,
                                                                     const uint8_t* const* at,
                                                                     size_t blocks) {
  AddToEight(states, at, blocks);
}

using AddEight = void (*)(uint32_t* const*, const uint8_t* const*, size_t);

// What this processor can and the system lets it; nullptr. Asked at the first use: see base/crc32c.cc.
AddEight BestAddEight() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_OSXSAVE) == 0) return nullptr;
  unsigned kept = 0, high = 0;  // which registers the system keeps
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  if ((kept & 0x06) != 0x06 || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return nullptr;
  if ((ebx & bit_AVX2) == 0) return nullptr;
  const bool more = (kept & 0xe6) == 0xe6 && (ebx & bit_AVX512F) != 0 && (ebx & bit_AVX512VL) != 0;
  return more ? AddEightAvx512 : AddEightAvx2;
}

AddEight EightLanes() {
  static const AddEight best = BestAddEight();
  return best;
}
#endif

}  // namespace

bool HasMd5Lanes() {
#if defined(__x86_64__)
  return EightLanes() != nullptr;
#else
  return false;
#endif
}

Md5Lane::Md5Lane(std::string_view bytes)
    : at_(reinterpret_cast<const uint8_t*>(bytes.data())), blocks_(bytes.size() / kBlock) {
  const size_t rest = bytes.size() % kBlock;
  std::memcpy(tail_, at_ + blocks_ * kBlock, rest);
  tail_[rest] = 0x80;
  tail_blocks_ = rest < kBlock - 8 ? 1 : 2;
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  std::memcpy(tail_ + tail_blocks_ * kBlock - 8, &bits, sizeof bits);
  if (blocks_ == 0) Took(0);
}

void Md5Lane::Took(size_t blocks) {
  at_ += blocks * kBlock;
  blocks_ -= blocks;
  if (blocks_ > 0 || tail_blocks_ == 0) return;
  at_ = tail_;
  blocks_ = std::exchange(tail_blocks_, 0);
}

std::string Md5Lane::Bytes() const {
  return {reinterpret_cast<const char*>(state_), sizeof state_};
}

void Md5Lane::Advance(const std::vector<Md5Lane*>& lanes, size_t blocks) {
#if defined(__x86_64__)
  if (lanes.size() > 1 && HasMd5Lanes()) {
    // Where there are fewer, the first is done again in a state that nobody looks at.
    uint32_t unused[4] = {};
    uint32_t* states[kMd5Lanes];
    const uint8_t* at[kMd5Lanes];
    for (size_t i = 0; i < kMd5Lanes; ++i) {
      states[i] = i < lanes.size() ? lanes[i]->state_ : unused;
      at[i] = lanes[i < lanes.size() ? i : 0]->at_;
    }
    EightLanes()(states, at, blocks);
    for (Md5Lane* lane : lanes) lane->Took(blocks);
    return;
  }
#endif
  for (Md5Lane* lane : lanes) {
    AddPlain(lane->state_, lane->at_, blocks);
    lane->Took(blocks);
  }
}

std::string Md5Crew::Hash(std::string_view bytes) {
  if (!HasMd5Lanes()) {
    Md5 md5;
    md5.Add(bytes);
    return md5.Bytes();
  }
  Order own{Md5Lane(bytes)};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&own);
  while (!own.done) {
    if (working_)
      changed_.wait(lock);
    else
      WorkUntilDone(own, &lock);
  }
  return own.lane.Bytes();
}

// Leaves the others, as far as they have come, to those that wait for them.
void Md5Crew::WorkUntilDone(const Order& own, std::unique_lock<std::mutex>* lock) {
  working_ = true;
  std::vector<Order*> taken;
  while (!own.done) {
    while (taken.size() < kMd5Lanes && !waiting_.empty()) {
      taken.push_back(waiting_.front());
      waiting_.pop_front();
    }
    lock->unlock();
    std::vector<Md5Lane*> lanes;
    size_t blocks = kAtOnce;
    for (Order* order : taken) {
      lanes.push_back(&order->lane);
      blocks = std::min(blocks, order->lane.blocks());
    }
    Md5Lane::Advance(lanes, blocks);
    lock->lock();
    for (Order* order : taken) order->done = order->lane.blocks() == 0;
    if (std::erase_if(taken, [](const Order* order) { return order->done; }) > 0) changed_.notify_all();
  }
  waiting_.insert(waiting_.begin(), taken.begin(), taken.end());
  working_ = false;
  changed_.notify_all();
}

}  // namespace overcap
