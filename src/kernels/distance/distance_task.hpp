// The input of the distance kernels, and the conversion of a finished sum to the output. No CUDA types.
#pragma once

#include "core/half.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>

namespace kith {

// Whether the matrix units multiply doubles at twice the rate of the others (certain_distance_cuda.cu).
constexpr bool has_fast_doubles(int compute_capability) {
  return compute_capability / 10 == 9 || compute_capability / 10 == 10;
}

// The output format of a key.
enum class KeyForm : uint8_t {
  ordered,   // core/ordered_key.hpp
  plain,     // the f32 itself, smaller is nearer
  distance,  // the f32 distance in the metric's unit
};

// The keys of all queries and rows go to keys[query * stride + row].
struct DistanceTask {
  DeviceRowsView queries;
  DeviceRowsView rows;
  int64_t cols = 0;
  KeyKind kind = KeyKind::l2;
  uint32_t* keys = nullptr;
  int64_t stride = 0;
  KeyForm form = KeyForm::ordered;
  uint32_t* first_bad = nullptr;  // where not null, lowered to the smallest row that is not finite
  const float* centre = nullptr;  // optional, for vectors close together: saves time and changes no key
};

// What one element does to a lane: scaled vectors leave cosine the step of squared_l2, and l2 has the same until its
// root is taken.
KITH_HOST_DEVICE constexpr KeyKind step_kind(KeyKind kind) {
  return kind == KeyKind::l2 || kind == KeyKind::cosine ? KeyKind::squared_l2 : kind;
}

// Calls use(KindTag<step>()) with the step of a kind that is summed in lanes: every one but hamming.
template <typename Use>
void visit_step(KeyKind kind, Use&& use) {
  switch (step_kind(kind)) {
    case KeyKind::inner_product: return use(KindTag<KeyKind::inner_product>());
    case KeyKind::l1: return use(KindTag<KeyKind::l1>());
    case KeyKind::linf: return use(KindTag<KeyKind::linf>());
    case KeyKind::chi_square: return use(KindTag<KeyKind::chi_square>());
    default: return use(KindTag<KeyKind::squared_l2>());
  }
}

// The key of a finished sum of a query and a row, by their numbers.
KITH_HOST_DEVICE inline float key_of_sum(const DistanceTask& task, double sum, int64_t query, int64_t row) {
  switch (task.kind) {
    case KeyKind::inner_product: return canonical_key<KeyKind::inner_product>(sum, 0, 0);
    case KeyKind::l2: return canonical_key<KeyKind::l2>(sum, 0, 0);
    case KeyKind::cosine:
      return canonical_key<KeyKind::cosine>(sum, task.queries.inverse_norms[query], task.rows.inverse_norms[row]);
    default: return canonical_key<KeyKind::squared_l2>(sum, 0, 0);
  }
}

KITH_HOST_DEVICE inline uint32_t written_key(const DistanceTask& task, float key) {
  // A NaN is always the same one, and a zero never negative.
  const float plain = key != key ? float_of_bits(0x7FC00000u) : key + 0.0f;
  const float distance = task.kind == KeyKind::inner_product ? 0.0f - plain : plain;
  const uint32_t bits = bits_of_float(task.form == KeyForm::distance ? distance : plain);
  return task.form == KeyForm::ordered ? ordered_key(plain) : bits;
}

}  // namespace kith
