#include "graph/nn_descent/descent_workspace.hpp"

#include "graph/control_rows.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>

namespace kith {

bool joins_are_products(KeyKind kind, int64_t cols) {
  return is_product(kind) && cols > 0 && cols <= kWindowMostHalfCols;
}

int64_t enough_for_descent(const MatrixView& x, Metric metric, int64_t k, int64_t list_length,
                           const DescentRules& rules) {
  constexpr int64_t kSearches = int64_t{256} << 20;  // of control rows, for some rows at a time
  constexpr int64_t kSmall = int64_t{4} << 20;       // surveys, control rows' lists, results on their way
  const int64_t rows = x.rows();
  const int64_t copied = x.space().host_readable() ? rows * x.cols() * size_of(x.dtype()) : 0;
  const int64_t norms = metric == Metric::cosine ? 8 * rows : 0;
  int64_t operands = 0;
  if (joins_are_products(key_kind(metric), x.cols())) {
    operands = operand_bytes(rows, operand_chunks(x.cols(), 2)) + 16 * rows +
               std::min(rows, kFactRows) * static_cast<int64_t>(sizeof(QueryFacts)) + 4 * x.cols();
  }
  const int64_t lists = 8 * rows * list_length;
  const int64_t start = 8 * rows + std::min(kStartBytes, 12 * rows * list_length);
  const int64_t rounds = operands + DescentLayout(rows, list_length, rules).bytes;
  const int64_t control = kControlRows * 8 * std::max(k, list_length);
  return copied + norms + lists + std::max(start, rounds) + kSearches + kSmall + control + 12 * k * std::min(rows, kFactRows);
}

}  // namespace kith
