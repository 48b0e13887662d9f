// Half bytes are widened to words, and the products of neighbouring words are added at once, four rows at a time.
#include "kernels/distance/nibble_keys_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/nibble_keys_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu_target.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using NibbleI16 = hn::CappedTag<int16_t, 16>;
using NibbleI8 = hn::Rebind<int8_t, NibbleI16>;
using NibbleI32 = hn::Repartition<int32_t, NibbleI16>;
constexpr int64_t kNibbleHalf = kNibbleColumns / 2;
constexpr int64_t kNibbleLanes = hn::MaxLanes(NibbleI16());
static_assert(kNibbleHalf % kNibbleLanes == 0);
constexpr int kNibbleRows = 4;

HWY_INLINE hn::Vec<NibbleI16> load_nibble_query(const int8_t* from) {
  return hn::PromoteTo(NibbleI16(), hn::LoadU(NibbleI8(), from));
}
HWY_INLINE hn::Vec<NibbleI16> load_nibble_query(const int16_t* from) { return hn::LoadU(NibbleI16(), from); }

template <ByteKeyKind kKind>
HWY_INLINE void add_nibbles(hn::Vec<NibbleI16> q, hn::Vec<NibbleI16> x, hn::Vec<NibbleI32>& even,
                            hn::Vec<NibbleI32>& odd) {
  if constexpr (kKind == ByteKeyKind::squares) {
    const auto apart = hn::Sub(q, x);
    even = hn::ReorderWidenMulAccumulate(NibbleI32(), apart, apart, even, odd);
  } else {
    even = hn::ReorderWidenMulAccumulate(NibbleI32(), q, x, even, odd);
  }
}

template <ByteKeyKind kKind, typename Query>
HWY_INLINE void nibble_keys_of_group(const Query* query, const int8_t* const (&rows)[kNibbleRows], int64_t bytes,
                                     int32_t* keys) {
  hn::Vec<NibbleI32> even[kNibbleRows];
  hn::Vec<NibbleI32> odd[kNibbleRows];
#pragma GCC unroll 4
  for (int r = 0; r < kNibbleRows; ++r) even[r] = odd[r] = hn::Zero(NibbleI32());
  const auto whole = hn::Set(NibbleI16(), int16_t{-kNibbleStep});
  for (int64_t b = 0; b < bytes; b += kNibbleLanes) {
    // Whole groups of columns before the byte, and its place in its own.
    const Query* const from = query + b / kNibbleHalf * kNibbleColumns + b % kNibbleHalf;
    const auto low_query = load_nibble_query(from);
    const auto high_query = load_nibble_query(from + kNibbleHalf);
#pragma GCC unroll 4
    for (int r = 0; r < kNibbleRows; ++r) {
      const auto both = hn::PromoteTo(NibbleI16(), hn::LoadU(NibbleI8(), rows[r] + b));
      add_nibbles<kKind>(low_query, hn::ShiftRight<9>(hn::ShiftLeft<12>(both)), even[r], odd[r]);
      add_nibbles<kKind>(high_query, hn::And(hn::ShiftRight<1>(both), whole), even[r], odd[r]);
    }
  }
  for (int r = 0; r < kNibbleRows; ++r) {
    const int32_t sum = hn::GetLane(hn::SumOfLanes(NibbleI32(), hn::Add(even[r], odd[r])));
    keys[r] = kKind == ByteKeyKind::squares ? sum : -sum;
  }
}

template <ByteKeyKind kKind, typename Query>
void nibble_keys_of_rows(const Query* query, const ByteKeyRows& rows, const uint32_t* numbers, int64_t count,
                         int32_t* keys) {
  for (int64_t first = 0; first < count; first += kNibbleRows) {
    const int8_t* some[kNibbleRows];
    for (int64_t r = 0; r < kNibbleRows; ++r) {
      some[r] = rows.data + static_cast<int64_t>(numbers[std::min(first + r, count - 1)]) * rows.stride;
    }
    int32_t found[kNibbleRows];
    nibble_keys_of_group<kKind>(query, some, rows.stride, found);
    std::copy_n(found, std::min<int64_t>(kNibbleRows, count - first), keys + first);
  }
}

template <typename Query>
void nibble_keys_by_kind(ByteKeyKind kind, const Query* query, const ByteKeyRows& rows, const uint32_t* numbers,
                         int64_t count, int32_t* keys) {
  if (kind == ByteKeyKind::squares) {
    return nibble_keys_of_rows<ByteKeyKind::squares>(query, rows, numbers, count, keys);
  }
  nibble_keys_of_rows<ByteKeyKind::products>(query, rows, numbers, count, keys);
}

void NibbleKeys(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                int64_t count, int32_t* keys) {
  // Words need no widening.
  if (query.words != nullptr) return nibble_keys_by_kind(kind, query.words, rows, numbers, count, keys);
  nibble_keys_by_kind(kind, query.bytes, rows, numbers, count, keys);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(NibbleKeys);

void nibble_keys_cpu(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                     int64_t count, int32_t* keys) {
#if defined(KITH_ARM)
  if (query.bytes != nullptr && cpu_extensions().dotprod) {
    return nibble_keys_dotprod(kind, query.bytes, rows, numbers, count, keys);
  }
#elif defined(KITH_X86)
  if (query.bytes != nullptr && cpu_extensions().vnni) {
    return nibble_keys_vnni(kind, query.bytes, rows, numbers, count, keys);
  }
#endif
  HWY_DYNAMIC_DISPATCH(NibbleKeys)(kind, query, rows, numbers, count, keys);
}

}  // namespace kith
#endif
