#include "quantize/scalar_training.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "quantize/codec_cuda.hpp"
#include "quantize/scalar_codes_cpu.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kShare = 8;  // of what the limit has left, for a piece of a file: there are two, and the ranges

}  // namespace

int64_t scalar_training_bytes(const RowsInfo& rows, int threads) {
  const int64_t ranges = array_bytes<float>(threads * 3 * rows.cols);
  return rows.in_memory ? ranges : std::max(2 * ranges, ranges + 2 * rows.row_bytes());
}

std::vector<float> train_scalar(RowSource& source, const Resources& resources) {
  constexpr int64_t kTaskRows = 1024;
  constexpr int64_t kPieceBytes = int64_t{16} << 20;  // of a file, at a time
  const RowsInfo info = source.info();
  const int64_t cols = info.cols;
  if (info.rows == 0) throw InvalidArgument("no rows to train on; give at least one");
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / kShare);
  const int64_t piece = info.in_memory ? info.rows : std::max<int64_t>(1, bytes / info.row_bytes());
  source.open(std::min(piece, info.rows), resources);
  // For each thread: the least and the largest of each column, and a row.
  const HostArray<float> found(resources.threads() * 3 * cols, "ranges of columns", resources);
  const auto of_slot = [&](int64_t slot) { return found.data() + slot * 3 * cols; };
  for (int64_t slot = 0; slot < resources.threads(); ++slot) {
    std::fill_n(of_slot(slot), cols, HUGE_VALF);
    std::fill_n(of_slot(slot) + cols, cols, -HUGE_VALF);
  }
  ProgressMeter meter("train ranges", info.rows, resources);
  for (int64_t first = 0; first < info.rows;) {
    const int64_t count = std::min({piece, info.rows - first, source.together(first)});
    const MatrixView rows = source.fetch(first, count);
    first += count;
    if (!rows.space().host_readable()) {
      widen_ranges_cuda(rows, of_slot(0), of_slot(0) + cols, resources);
      meter.add(count);
      continue;
    }
    parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int slot) {
      const int64_t begin = task * kTaskRows;
      const int64_t end = std::min(count, begin + kTaskRows);
      float* const leasts = of_slot(slot);
      if (rows.dtype() == DType::f32) {
        const auto* const values = typed_row<float>(rows, begin);
        widen_ranges_cpu(values, rows.row_stride(), end - begin, cols, leasts, leasts + cols);
      } else {
        float* const row = leasts + 2 * cols;
        for (int64_t i = begin; i < end; ++i) {
          widen_row(rows, i, row);
          widen_ranges_cpu(row, cols, 1, cols, leasts, leasts + cols);
        }
      }
      meter.add(end - begin);
    });
  }
  meter.finish();
  std::vector<float> values(static_cast<size_t>(2 * cols));
  for (int64_t c = 0; c < cols; ++c) {
    float least = HUGE_VALF;
    float largest = -HUGE_VALF;
    for (int64_t slot = 0; slot < resources.threads(); ++slot) {
      least = std::min(least, of_slot(slot)[c]);
      largest = std::max(largest, of_slot(slot)[cols + c]);
    }
    const float span = largest - least;
    if (!std::isfinite(span)) {
      throw InvalidArgument(
          fmt::format("column {} goes from {} to {}, which is more than f32 holds; scale the rows down, or leave out "
                      "those that are not finite",
                      c, least, largest));
    }
    values[static_cast<size_t>(c)] = least + 0.0f;  // no negative zero, whichever came first
    values[static_cast<size_t>(cols + c)] = span;
  }
  return values;
}

}  // namespace kith
