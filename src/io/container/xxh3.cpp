#include "io/container/xxh3.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kith {
namespace {

static_assert(std::endian::native == std::endian::little, "words are taken as they lie");

constexpr uint64_t kPrime32_1 = 0x9E3779B1;
constexpr uint64_t kPrime64_1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime64_3 = 0x165667B19E3779F9;
constexpr uint64_t kPrimeMix1 = 0x165667919E3779F9;
constexpr uint64_t kPrimeMix2 = 0x9FB21C651E98DF25;

constexpr size_t kStripe = 64;
constexpr size_t kSecretStep = 8;    // from one stripe to the next
constexpr size_t kScrambleAt = 128;  // places in the secret
constexpr size_t kLastStripeAt = 121;
constexpr size_t kMergeAt = 11;

constexpr std::array<uint8_t, 192> kSecret{
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

uint64_t word64(const void* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

uint64_t word32(const void* from) {
  uint32_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

uint64_t secret64(size_t at) { return word64(&kSecret[at]); }
uint64_t secret32(size_t at) { return word32(&kSecret[at]); }

uint64_t swap_bytes(uint64_t x) {
  x = (x & 0x00ff00ff00ff00ff) << 8 | (x >> 8 & 0x00ff00ff00ff00ff);
  x = (x & 0x0000ffff0000ffff) << 16 | (x >> 16 & 0x0000ffff0000ffff);
  return x << 32 | x >> 32;
}

// The two halves of the 128-bit product, xored.
uint64_t folded_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t avalanche(uint64_t h) {
  h = (h ^ h >> 37) * kPrimeMix1;
  return h ^ h >> 32;
}

uint64_t avalanche_xxh64(uint64_t h) {
  h = (h ^ h >> 33) * kPrime64_2;
  h = (h ^ h >> 29) * kPrime64_3;
  return h ^ h >> 32;
}

uint64_t mix16(const std::byte* in, size_t secret_at) {
  return folded_product(word64(in) ^ secret64(secret_at), word64(in + 8) ^ secret64(secret_at + 8));
}

uint64_t hash_up_to_16(const std::byte* in, size_t size) {
  if (size > 8) {
    const uint64_t low = word64(in) ^ secret64(24) ^ secret64(32);
    const uint64_t high = word64(in + size - 8) ^ secret64(40) ^ secret64(48);
    return avalanche(size + swap_bytes(low) + high + folded_product(low, high));
  }
  if (size >= 4) {
    uint64_t h = (word32(in + size - 4) + (word32(in) << 32)) ^ secret64(8) ^ secret64(16);
    h ^= std::rotl(h, 49) ^ std::rotl(h, 24);
    h *= kPrimeMix2;
    h = (h ^ ((h >> 35) + size)) * kPrimeMix2;
    return h ^ h >> 28;
  }
  if (size == 0) return avalanche_xxh64(secret64(56) ^ secret64(64));
  const auto byte = [&](size_t i) { return std::to_integer<uint64_t>(in[i]); };
  const uint64_t word = byte(0) << 16 | byte(size / 2) << 24 | byte(size - 1) | uint64_t{size} << 8;
  return avalanche_xxh64(word ^ secret32(0) ^ secret32(4));
}

uint64_t hash_up_to_240(const std::byte* in, size_t size) {
  uint64_t h = size * kPrime64_1;
  if (size <= 128) {  // pairs from both ends inwards
    for (size_t i = (size - 1) / 32 + 1; i-- > 0;) {
      h += mix16(in + 16 * i, 32 * i);
      h += mix16(in + size - 16 * (i + 1), 32 * i + 16);
    }
    return avalanche(h);
  }
  for (size_t i = 0; i < 8; ++i) h += mix16(in + 16 * i, 16 * i);
  h = avalanche(h);
  for (size_t i = 8; i < size / 16; ++i) h += mix16(in + 16 * i, 16 * (i - 8) + 3);
  return avalanche(h + mix16(in + size - 16, 119));
}

using Lanes = std::array<uint64_t, 8>;

inline void mix_stripe(Lanes& lanes, const std::byte* in, size_t secret_at) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    const uint64_t word = word64(in + 8 * i);
    const uint64_t key = word ^ secret64(secret_at + 8 * i);
    lanes[i ^ 1] += word;
    lanes[i] += (key & 0xffffffff) * (key >> 32);
  }
}

void mix_stripes(Lanes& lanes, const std::byte* in, size_t stripes) {
  Lanes local = lanes;  // in registers
  for (size_t i = 0; i < stripes; ++i) mix_stripe(local, in + kStripe * i, kSecretStep * i);
  lanes = local;
}

void mix_block(Lanes& lanes, const std::byte* in) {
  mix_stripes(lanes, in, 16);
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ secret64(kScrambleAt + 8 * i)) * kPrime32_1;
  }
}

}  // namespace

void Xxh3::update(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  while (!bytes.empty()) {
    if (pending_ == kBlockBytes) {
      mix_block(lanes_, buffer_.data() + kStripeBytes);
      std::memcpy(buffer_.data(), buffer_.data() + kBlockBytes, kStripeBytes);
      pending_ = 0;
    }
    if (pending_ == 0 && bytes.size() > kBlockBytes) {  // whole blocks straight from the input
      const size_t blocks = (bytes.size() - 1) / kBlockBytes;
      for (size_t i = 0; i < blocks; ++i) mix_block(lanes_, bytes.data() + i * kBlockBytes);
      std::memcpy(buffer_.data(), bytes.data() + blocks * kBlockBytes - kStripeBytes, kStripeBytes);
      bytes = bytes.subspan(blocks * kBlockBytes);
    }
    const size_t taken = std::min(bytes.size(), kBlockBytes - pending_);
    std::memcpy(buffer_.data() + kStripeBytes + pending_, bytes.data(), taken);
    pending_ += taken;
    bytes = bytes.subspan(taken);
  }
}

uint64_t Xxh3::digest() const {
  const std::byte* const pending = buffer_.data() + kStripeBytes;
  if (total_ <= 16) return hash_up_to_16(pending, total_);
  if (total_ <= 240) return hash_up_to_240(pending, total_);
  Lanes lanes = lanes_;
  mix_stripes(lanes, pending, (pending_ - 1) / kStripeBytes);
  mix_stripe(lanes, buffer_.data() + pending_, kLastStripeAt);  // the last 64 bytes of all
  uint64_t h = total_ * kPrime64_1;
  for (size_t i = 0; i < 4; ++i) {
    h += folded_product(lanes[2 * i] ^ secret64(kMergeAt + 16 * i), lanes[2 * i + 1] ^ secret64(kMergeAt + 16 * i + 8));
  }
  return avalanche(h);
}

uint64_t xxh3(std::span<const std::byte> bytes) {
  Xxh3 hash;
  hash.update(bytes);
  return hash.digest();
}

}  // namespace kith
