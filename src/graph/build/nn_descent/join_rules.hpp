// The integer rules of NN-Descent, the same on every device: who meets whom, where an offer waits.
//
// Nothing here depends on who came first. A row's reverse samples are, of all that name it and fall into the same
// bucket, the one with the smallest hash; an offer waits in the slot that its hash gives, of several the nearest by
// (key, row). Hashes are salted by the round, so that two that collide once need not collide again.
#pragma once

#include "graph/lists/start_rules.hpp"

#include <cstdint>

namespace kith {

struct DescentRules {
  int64_t samples = 32;       // p of the paper
  int64_t inbox_slots = 32;
  bool all_pairs = false;     // offer every pair; otherwise only the nearest
  int64_t boundary = 0;       // splits the rows into two sets and joins only pairs across; 0: no split
  uint64_t seed = 0;
  bool random_lists = false;  // lists start with random rows, so many pairs pass
};

KITH_HOST_DEVICE constexpr uint64_t mixed(
    uint64_t value) {  // the finalizer of MurmurHash3: every bit moves every other
  value ^= value >> 33;
  value *= 0xFF51AFD7ED558CCDull;
  value ^= value >> 33;
  value *= 0xC4CEB9FE1A85EC53ull;
  return value ^ value >> 33;
}
// Salt of a round of a build with that seed.
KITH_HOST_DEVICE constexpr uint64_t round_salt(uint64_t seed, int64_t round) {
  return mixed(seed + 0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(round) + 1));
}

KITH_HOST_DEVICE constexpr uint32_t pair_hash(uint64_t salt, uint32_t from, uint32_t to) {
  return static_cast<uint32_t>(mixed(salt ^ (static_cast<uint64_t>(from) << 32 | to)) >> 32);
}

// In [0, count).
KITH_HOST_DEVICE constexpr int64_t place_of(uint32_t hash, int64_t count) {
  return static_cast<int64_t>((static_cast<uint64_t>(hash) * static_cast<uint64_t>(count)) >> 32);
}

// The slot in the inbox of `row` where the offer of `neighbor` waits.
KITH_HOST_DEVICE constexpr int64_t inbox_slot(uint64_t salt, uint32_t neighbor, int64_t slots) {
  return place_of(pair_hash(salt, neighbor, kNobody), slots);
}

// The bucket of `to` in which `from` stands for a reverse sample; of several the smaller by (hash, from) stays.
KITH_HOST_DEVICE constexpr bool replaces(uint64_t salt, uint32_t to, uint32_t from, uint32_t other) {
  if (other == kNobody) return true;
  const uint32_t mine = pair_hash(salt, from, to);
  const uint32_t theirs = pair_hash(salt, other, to);
  return mine != theirs ? mine < theirs : from < other;
}

}  // namespace kith
