// Distinct rows drawn at random, each set as likely, and rows gathered from wherever they lie.
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
// `most` of them, or all where there are no more.
std::vector<uint32_t> drawn_rows(const CounterRng& rng, int64_t rows, int64_t most, const Resources& resources);
// first, first + 1, ...
std::vector<uint32_t> row_numbers(int64_t first, int64_t count);
inline Footprint sample_footprint(int64_t rows) { return array_footprint<uint64_t>(divide_up(rows, 64)); }

// The rows listed, in their order, widened to f32 or as they are. Ascending numbers read a file from front to back.
// `out` is in host memory, the source anywhere.
void gather_as_floats(RowSource& source, const std::vector<uint32_t>& rows, float* out, const Resources& resources);
void gather(RowSource& source, const std::vector<uint32_t>& rows, const MutableMatrixView& out,
            const Resources& resources);

// What gather_as_floats of so many such rows takes: device memory where they lie on a GPU.
Footprint gathering_footprint(const RowsInfo& rows, int64_t count, const Resources& resources);

// Rows of a source as a source of their own on the host, gathered anew at each fetch: all, or those listed by ascending
// numbers. Memory: what one fetch brings, once it is open.
class GatheredSource final : public RowSource {
 public:
  // What is done to a row of f32 that was gathered, with its place among these.
  using Step = std::function<void(float* row, int64_t place)>;

  // The source and the list outlive it; an empty list has all rows. `dtype`: f32, or the source's. What is read comes
  // from `reading`.
  GatheredSource(RowSource& from, std::span<const uint32_t> list, DType dtype, const Resources& reading, Step step = {})
      : from_(from), list_(list), dtype_(dtype), reading_(reading.with_progress({})), step_(std::move(step)) {}
  // All rows as f32.
  GatheredSource(std::unique_ptr<RowSource> from, const Resources& reading, Step step)
      : GatheredSource(*from, {}, DType::f32, reading, std::move(step)) {
    own_ = std::move(from);
  }

  // What a source says of so many such rows.
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

// A vector near the mean of some rows, to be subtracted from all of them before they are multiplied: small numbers lose
// little. Any choice is correct.
//
// How many of so many rows tell enough of them: an eighth, 32 at least and 256 at most. Of few rows more would take as
// long as what is done with them.
int64_t sampled_rows(int64_t rows);

// The mean of that many rows, or of so many, evenly spread; 0 in a column whose mean is not finite.
std::vector<float> sample_mean(RowSource& rows, int64_t cols);
std::vector<float> sample_mean(RowSource& rows, int64_t cols, int64_t samples);

// Where the source is a matrix in the memory of a GPU, all of it.
std::optional<MatrixView> on_gpu(RowSource& source);

}  // namespace kith
