// One query's window of a k-NN search, on the device.
#pragma once

#include "core/ordered_key.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/knn_window_task.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// Writes the threshold and the limit of keys; nothing is sure where the window returned says so.
__device__ inline CandidateWindow write_knn_window(const KnnWindowTask& task, int64_t query, double kth) {
  const BaseFacts base = *task.base_facts;
  const MeasuredWindow measured =
      measured_window({task.kind, task.type == OperandType::bytes, task.cols}, base, task.query_facts[query]);
  CandidateWindow window = candidate_window(measured.problem, measured.query, base.rows, kth);
  window.sure = window.sure && measured.sure;
  task.thresholds[query] = window.sure ? window.threshold : -HUGE_VALF;
  task.key_limits[query] = window.sure ? ordered_key(window.key_limit) : 0;
  if (task.row_counts != nullptr) task.row_counts[query] = 0;
  return window;
}

}  // namespace kith
