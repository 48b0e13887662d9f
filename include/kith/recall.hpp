// The quality of found neighbours, compared with the true ones. Two measures, not to be confused:
//
//   one_recall   1-recall@R: how often the true nearest is among the first R found (the PQ and LSQ papers)
//   k_recall     k-recall@k: the mean share of the true k nearest among the k found (ann-benchmarks)
#pragma once

#include <kith/export.hpp>

#include <cstdint>

namespace kith {

// Row-major queries x cols ids; -1 is none. A truth with a duplicate id in a row is InvalidArgument.
struct IdMatrixView {
  const int64_t* ids = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

KITH_EXPORT double one_recall(const IdMatrixView& found, const IdMatrixView& truth, int64_t r);
KITH_EXPORT double k_recall(const IdMatrixView& found, const IdMatrixView& truth, int64_t k);

}  // namespace kith
