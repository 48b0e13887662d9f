// Draws distinct rows at random, with each set equally likely, and gathers rows from any source.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/random.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kith {

// `count` of `rows` row numbers, ascending (Floyd's algorithm). A bit for each row.
// Where memory is only counted (core/footprint.hpp) the numbers mean nothing, and nothing is gathered.
std::vector<uint32_t> sample_rows(const CounterRng& rng, int64_t rows, int64_t count, const Resources& resources);
// `most` of the rows, or all if there are no more.
std::vector<uint32_t> drawn_rows(const CounterRng& rng, int64_t rows, int64_t most, const Resources& resources);
// first, first + 1, ...
std::vector<uint32_t> row_numbers(int64_t first, int64_t count);
inline Footprint sample_footprint(int64_t rows) { return array_footprint<uint64_t>(divide_up(rows, 64)); }

// Gathers the listed rows in order, widened to f32 or as stored. Ascending numbers read a file from front to back.
// `out` is in host memory, the source anywhere.
void gather_as_floats(RowSource& source, const std::vector<uint32_t>& rows, float* out, const Resources& resources);
void gather(RowSource& source, const std::vector<uint32_t>& rows, const MutableMatrixView& out,
            const Resources& resources);

// The memory of gather_as_floats for `count` such rows: device memory if they are on a GPU.
Footprint gathering_footprint(const RowsInfo& rows, int64_t count, const Resources& resources);

// A source of rows gathered on the host from another source at each fetch: all rows, or those listed by ascending
// numbers. Memory: one fetch, once it is open.
class GatheredSource final : public RowSource {
 public:
  // Applied to each gathered f32 row; `place`: its position among these.
  using Step = std::function<void(float* row, int64_t place)>;

  // The source and the list must outlive it; an empty list means all rows. `dtype`: f32, or the source's. Read buffers
  // come from `reading`.
  GatheredSource(RowSource& from, std::span<const uint32_t> list, DType dtype, const Resources& reading, Step step = {})
      : from_(from), list_(list), dtype_(dtype), reading_(reading.with_progress({})), step_(std::move(step)) {}
  // All rows as f32.
  GatheredSource(std::unique_ptr<RowSource> from, const Resources& reading, Step step)
      : GatheredSource(*from, {}, DType::f32, reading, std::move(step)) {
    own_ = std::move(from);
  }

  // The info of a source of `rows` such rows.
  static RowsInfo info_of(const RowsInfo& from, int64_t rows, DType dtype = DType::f32) {
    RowsInfo info(rows, from.cols, dtype);
    info.in_memory = false;
    return info;
  }
  RowsInfo info() const override {
    const RowsInfo from = from_.info();
    return info_of(from, list_.empty() ? from.rows : std::ssize(list_), dtype_);
  }
  void open(int64_t most, const Resources& resources) override {
    buffer_ = MatrixBuffer(dtype_, std::min(most, info().rows), info().cols, "gathered rows", resources);
  }
  MatrixView fetch(int64_t first, int64_t count) override;
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources&) override {
    take({rows, rows + count}, out);
  }

 private:
  void take(const std::vector<uint32_t>& places, const MutableMatrixView& out);

  std::unique_ptr<RowSource> own_;
  RowSource& from_;
  const std::span<const uint32_t> list_;
  const DType dtype_;
  const Resources reading_;
  const Step step_;
  MatrixBuffer buffer_;
};

// A vector near the mean of some rows, to be subtracted from all rows before they are multiplied: rounding small
// numbers loses little. Any choice is correct.
//
// The size of the sample: an eighth of the rows, at least 32 and at most 256. For few rows a larger sample would take
// as long as the work itself.
int64_t sampled_rows(int64_t rows);

// The mean of sampled_rows() rows, or of `count`, evenly spread; 0 in a column whose mean is not finite.
std::vector<float> sample_mean(RowSource& rows, int64_t cols);
std::vector<float> sample_mean(RowSource& rows, int64_t cols, int64_t samples);

// The whole matrix, if the source is one in the memory of a GPU.
std::optional<MatrixView> on_gpu(RowSource& source);

}  // namespace kith
