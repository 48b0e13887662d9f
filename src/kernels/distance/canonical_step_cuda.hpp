// canonical_step for kernels that hold many lanes in registers: the same bits, with a division that does not branch.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/float_quotient_cuda.hpp"

namespace kith {

// Of values that are scaled already.
template <KeyKind kKind>
KITH_DEVICE_INLINE double canonical_step_cuda(double lane, double q, double x) {
  if constexpr (kKind == KeyKind::chi_square) {
    const double difference = q - x;
    const double sum = q + x;
    const double more = lane + float_quotient(difference * difference, sum);
    return sum == 0.0 ? lane : more;
  } else {
    return canonical_step<kKind>(lane, q, x, 0.0, 0.0);
  }
}

}  // namespace kith
