// Bytes are widened to words, and the products of neighbouring words are added at once. Four rows are compared at a
// time, so that one's additions and loads do not wait for another's.
#include "kernels/distance/byte_keys_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/byte_keys_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu_target.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I16 = hn::CappedTag<int16_t, 16>;
using I8 = hn::Rebind<int8_t, I16>;
using I32 = hn::Repartition<int32_t, I16>;
constexpr int64_t kStep = hn::MaxLanes(I16());
static_assert(kByteKeyColumns % kStep == 0);
constexpr int kRows = 4;

HWY_INLINE hn::Vec<I16> load_words(const int8_t* from) { return hn::PromoteTo(I16(), hn::LoadU(I8(), from)); }
HWY_INLINE hn::Vec<I16> load_words(const int16_t* from) { return hn::LoadU(I16(), from); }

template <ByteKeyKind kKind, typename Query>
HWY_INLINE void keys_of_group(const Query* query, const int8_t* const (&rows)[kRows], int64_t cols, int32_t* keys) {
  hn::Vec<I32> even[kRows];
  hn::Vec<I32> odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(I32());
  for (int64_t c = 0; c < cols; c += kStep) {
    const auto q = load_words(query + c);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto x = load_words(rows[r] + c);
      if constexpr (kKind == ByteKeyKind::squares) {
        const auto apart = hn::Sub(q, x);
        even[r] = hn::ReorderWidenMulAccumulate(I32(), apart, apart, even[r], odd[r]);
      } else {
        even[r] = hn::ReorderWidenMulAccumulate(I32(), q, x, even[r], odd[r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int32_t sum = hn::GetLane(hn::SumOfLanes(I32(), hn::Add(even[r], odd[r])));
    keys[r] = kKind == ByteKeyKind::squares ? sum : -sum;
  }
}

template <ByteKeyKind kKind, typename Query>
void keys_of_rows(const Query* query, const ByteKeyRows& rows, const uint32_t* numbers, int64_t count, int32_t* keys) {
  for (int64_t first = 0; first < count; first += kRows) {
    const int8_t* some[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      some[r] = rows.data + static_cast<int64_t>(numbers[std::min(first + r, count - 1)]) * rows.stride;
    }
    if (first + kRows <= count) {
      keys_of_group<kKind>(query, some, rows.stride, keys + first);
      continue;
    }
    int32_t last[kRows];
    keys_of_group<kKind>(query, some, rows.stride, last);
    std::copy_n(last, count - first, keys + first);
  }
}

template <typename Query>
void keys_by_kind(ByteKeyKind kind, const Query* query, const ByteKeyRows& rows, const uint32_t* numbers, int64_t count,
                  int32_t* keys) {
  if (kind == ByteKeyKind::squares) return keys_of_rows<ByteKeyKind::squares>(query, rows, numbers, count, keys);
  keys_of_rows<ByteKeyKind::products>(query, rows, numbers, count, keys);
}

void ByteKeys(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
              int64_t count, int32_t* keys) {
  // Words need no widening.
  if (query.words != nullptr) return keys_by_kind(kind, query.words, rows, numbers, count, keys);
  keys_by_kind(kind, query.bytes, rows, numbers, count, keys);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ByteKeys);

void byte_keys_cpu(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                   int64_t count, int32_t* keys) {
#if defined(KITH_ARM)
  if (query.bytes != nullptr && cpu_extensions().dotprod) {
    return byte_keys_dotprod(kind, query.bytes, rows, numbers, count, keys);
  }
#elif defined(KITH_X86)
  if (cpu_extensions().vnni) return byte_keys_vnni(kind, query, rows, numbers, count, keys);
#endif
  HWY_DYNAMIC_DISPATCH(ByteKeys)(kind, query, rows, numbers, count, keys);
}

}  // namespace kith
#endif
