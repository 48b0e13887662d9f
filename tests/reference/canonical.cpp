#include "reference/canonical.hpp"

#include "kernels/distance/canonical.hpp"

namespace kith::reference {
namespace {

template <KeyKind kKind>
float pair(const float* q, const float* x, int64_t cols) {
  return canonical_pair<kKind>(q, x, cols);
}

#if defined(__x86_64__)
template <KeyKind kKind>
__attribute__((target("fma"), flatten)) float pair_with_fma(const float* q, const float* x, int64_t cols) {
  return canonical_pair<kKind>(q, x, cols);
}

const bool has_fma = __builtin_cpu_supports("fma");
#endif

}  // namespace

float canonical(Metric metric, const float* q, const float* x, int64_t cols) {
  return visit_kind(key_kind(metric), [&](auto tag) {
#if defined(__x86_64__)
    if (has_fma) return pair_with_fma<tag.kind>(q, x, cols);
#endif
    return pair<tag.kind>(q, x, cols);
  });
}

}  // namespace kith::reference
