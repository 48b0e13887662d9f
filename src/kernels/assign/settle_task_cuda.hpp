// The rows that get labels, the centres they are compared with, and what products have left of these: the task of the
// kernels that nearest_centre_cuda.hpp declares.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/matrix/nearest_rows.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cstdint>

namespace kith {

struct SettleTask {
  KeyKind kind = KeyKind::squared_l2;
  DeviceRowsView rows;
  const float* centres = nullptr;  // one after the other
  int64_t cols = 0;
  const QueryOperand* bounds = nullptr;
  const BaseBounds* centre_bounds = nullptr;
  const OperandBounds* typical = nullptr;  // null: terms are as they were, for inner products
  const float* widths = nullptr;          // of the centres
  // Where rows come with a guess in `labels` and `keys`, the nearest centre of the pass before: how far each centre has
  // moved since; or null.
  const double* squared_moves = nullptr;
  // Keys that matter: a row whose nearest centre has proven to be no nearer may get any label, and +inf as its key.
  // Null where all do; not with moves.
  const float* known = nullptr;
  float* slacks = nullptr;
  float* limits = nullptr;
  NearestRows* found = nullptr;  // parts x stride
  int64_t stride = 0;
  int parts = 1;
  int32_t* labels = nullptr;
  float* keys = nullptr;
  uint32_t* unsettled = nullptr;  // rows with more candidates than were kept, or of which nothing is sure; in no order
  uint32_t* unsettled_count = nullptr;
  uint32_t* several = nullptr;  // rows with more than one candidate, on the way
  uint32_t* several_count = nullptr;
  // For each row: which products its candidates have; -inf where it has one, less than any product where it has few,
  // +inf where nothing is sure.
  float* thresholds = nullptr;
};

}  // namespace kith
