// The nearest rows of one query by a copy of the rows in bytes (byte_screen_cuda.hpp): what bounds
// (matrix/byte_window.hpp) do not rule out is compared with the rows themselves, so that results are exact. One launch:
// the block that is done last chooses the candidates and sorts them. Time is that of reading a byte for each value.
#pragma once

#include "cuda/pinned_page.hpp"
#include "kernels/rerank/byte_screen_cuda.hpp"
#include "kernels/rerank/few_nearest_plan.hpp"
#include "kernels/rerank/few_results_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct ScreenedNearestTask {
  KeyKind kind = KeyKind::l2;
  DeviceRowsView query;  // one
  DeviceRowsView rows;
  int64_t cols = 0;
  ByteScreenView screen;
  FewResults results;                  // of at most kFewNearestMostK neighbours
  float* lowers = nullptr;             // scratch: one per row
  float* minima = nullptr;             // scratch: screened_minima(...)
  PinnedPage::Words* words = nullptr;  // as a page has them
  FewReport* report = nullptr;         // if `failed` is set, no results are written
  const uint32_t* bad_row = nullptr;   // optional: result of an earlier check of the rows
};

// For a search that suits_byte_screen(), of rows of floats. Enqueues and returns. At least one row, at most 2^31 - 1.
void launch_screened_nearest(const ScreenedNearestTask& task, const InlineQueries& query, int multiprocessors,
                             cudaStream_t stream);

}  // namespace kith
