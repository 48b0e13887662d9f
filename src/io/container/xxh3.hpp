// XXH3-64: the hash of Yann Collet's xxHash with the seed 0 and its default secret, written from the published
// specification. It is fast, not cryptographic: it finds damage, not forgery. On one core it takes some GB/s.
//
// Bytes may come in pieces of any size; the hash is that of all of them in a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kith {

class Xxh3 {
 public:
  void update(std::span<const std::byte> bytes);
  uint64_t digest() const;  // of what came so far

 private:
  static constexpr size_t kStripeBytes = 64;
  static constexpr size_t kBlockBytes = 1024;

  // Sixteen stripes of input are mixed into these, then they are scrambled: a block.
  std::array<uint64_t, 8> lanes_{0xC2B2AE3D,         0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                 0x85EBCA77C2B2AE63, 0x85EBCA77,         0x27D4EB2F165667C5, 0x9E3779B1};
  // The last stripe before the pending bytes, then up to a block of these. A block is mixed when a byte follows it: the
  // end of the input is mixed in another way.
  std::array<std::byte, kStripeBytes + kBlockBytes> buffer_{};
  size_t pending_ = 0;
  uint64_t total_ = 0;
};

uint64_t xxh3(std::span<const std::byte> bytes);

}  // namespace kith
