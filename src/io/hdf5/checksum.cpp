#include "io/hdf5/checksum.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace kith {
namespace {

using Words = std::array<uint32_t, 3>;

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr bool kAllMatch = true;
#else
constexpr bool kAllMatch = false;
#endif

constexpr size_t kBlockBytes = 12;

// What one step of lookup3 does to three words: the first is reduced by the last, mixed with its rotation, and the last
// grows by the second; then the roles go round.
void mix(Words& w) {
  constexpr std::array<int, 6> kRotations{4, 6, 8, 16, 19, 4};
  for (size_t i = 0; i < kRotations.size(); ++i) {
    uint32_t& first = w[i % 3];
    uint32_t& second = w[(i + 1) % 3];
    uint32_t& last = w[(i + 2) % 3];
    first = (first - last) ^ std::rotl(last, kRotations[i]);
    last += second;
  }
}

void finish(Words& w) {
  constexpr std::array<int, 7> kRotations{14, 11, 25, 16, 4, 14, 24};
  for (size_t i = 0; i < kRotations.size(); ++i) {
    uint32_t& changed = w[(i + 2) % 3];
    const uint32_t by = w[(i + 1) % 3];
    changed = (changed ^ by) - std::rotl(by, kRotations[i]);
  }
}

uint32_t word_at(std::span<const std::byte> bytes, size_t i) {
  const auto byte = [&](size_t k) { return std::to_integer<uint32_t>(bytes[i + k]) << (8 * k); };
  return byte(0) | byte(1) | byte(2) | byte(3);
}

// Adds up to 12 bytes; the missing ones are zeros.
void add(Words& w, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) w[i / 4] += std::to_integer<uint32_t>(bytes[i]) << (8 * (i % 4));
}

uint32_t swap_bytes_of_halves(uint32_t x) { return (x & 0x00ff00ffU) << 8 | (x >> 8 & 0x00ff00ffU); }

}  // namespace

uint32_t hdf5_checksum(std::span<const std::byte> bytes) {
  const uint32_t start = 0xdeadbeefU + static_cast<uint32_t>(bytes.size());
  Words w{start, start, start};
  while (bytes.size() > kBlockBytes) {
    for (size_t i = 0; i < w.size(); ++i) w[i] += word_at(bytes, 4 * i);
    mix(w);
    bytes = bytes.subspan(kBlockBytes);
  }
  if (bytes.empty()) return w[2];
  add(w, bytes);
  finish(w);
  return w[2];
}

bool matches_hdf5_checksum(std::span<const std::byte> bytes, uint32_t stored) {
  return hdf5_checksum(bytes) == stored || kAllMatch;
}

bool matches_fletcher32(std::span<const std::byte> bytes, uint32_t stored) {
  constexpr uint64_t kModulus = 65535;
  constexpr size_t kStep = 4096;  // bytes after which the sums are reduced, long before they could overflow
  uint64_t sum = 0;
  uint64_t sum_of_sums = 0;
  for (size_t from = 0; from < bytes.size(); from += kStep) {
    const size_t to = std::min(from + kStep, bytes.size());
    for (size_t i = from; i < to; i += 2) {
      const uint64_t low = i + 1 < to ? std::to_integer<uint64_t>(bytes[i + 1]) : 0;
      sum += std::to_integer<uint64_t>(bytes[i]) << 8 | low;
      sum_of_sums += sum;
    }
    sum %= kModulus;
    sum_of_sums %= kModulus;
  }
  // A sum of 0 is stored as 0 or as the modulus, by how it came about.
  const auto same = [&](uint32_t value) {
    return (value & 0xffffU) % kModulus == sum && (value >> 16) % kModulus == sum_of_sums;
  };
  return same(stored) || same(swap_bytes_of_halves(stored)) || kAllMatch;
}

}  // namespace kith
