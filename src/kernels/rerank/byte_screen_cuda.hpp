// A copy of rows in bytes on a GPU, and the nearest rows of one query by it: what bounds (matrix/byte_window.hpp) do
// not rule out is compared with the rows themselves, so that results are exact. One launch: the block that is done last
// chooses the candidates and sorts them. Time is that of reading a byte for each value.
//
// Memory: a byte for each value, columns rounded up to 16, and 12 for each row.
#pragma once

#include "cuda/pinned_page.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/matrix/byte_window.hpp"
#include "kernels/rerank/few_nearest_plan.hpp"
#include "kernels/rerank/few_results_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct ByteScreenView {
  int8_t* codes = nullptr;  // rows x stride; null: there is no copy
  int64_t stride = 0;
  float* scales = nullptr;  // as ByteRowFacts has them, of each row
  float* squares = nullptr;
  float* residuals = nullptr;
  float* centre = nullptr;  // cols; null: rows are kept as they are, or of length 1
};

struct ByteScreenLayout : WorkspaceLayout {
  ByteScreenLayout(int64_t rows, int64_t cols, bool centred)
      : stride(round_up(cols, 16)),
        codes(take<int8_t>(rows, stride)),
        scales(take<float>(rows)),
        squares(take<float>(rows)),
        residuals(take<float>(rows)),
        centre(take<float>(centred ? cols : 0)) {}

  ByteScreenView in(std::byte* memory) const {
    return {codes.in(memory),     stride,
            scales.in(memory),    squares.in(memory),
            residuals.in(memory), centre.count > 0 ? centre.in(memory) : nullptr};
  }

  int64_t stride;
  Slot<int8_t> codes;
  Slot<float> scales, squares, residuals, centre;
};

// Fills the copy; its centre is there already. Rows are floats of any kind, with inverse norms for cosine. Enqueues and
// returns.
void launch_byte_screen(KeyKind kind, const DeviceRowsView& rows, int64_t cols, const ByteScreenView& to,
                        cudaStream_t stream);

struct ScreenedNearestTask {
  KeyKind kind = KeyKind::l2;
  DeviceRowsView query;  // one
  DeviceRowsView rows;
  int64_t cols = 0;
  ByteScreenView screen;
  FewResults results;                 // of at most kFewNearestMostK neighbours
  float* lowers = nullptr;            // memory: one for each row,
  float* minima = nullptr;            // and screened_minima(...)
  PinnedPage::Words* words = nullptr;  // as a page has them
  FewReport* report = nullptr;        // where it says `failed` no results are written
  const uint32_t* bad_row = nullptr;   // what was found of rows before, where it matters
};

// Of a search that suits_byte_screen(), of rows of floats. Enqueues and returns. At least one row and at most 2^31 - 1.
void launch_screened_nearest(const ScreenedNearestTask& task, const InlineQueries& query, int multiprocessors,
                             cudaStream_t stream);

}  // namespace kith
