// Rows drawn for training, as f32, where they lie: in host memory, or in that of the GPU that holds the rows, if there is
// room. Which rows they are depends on neither.
//
// Memory: a sample as f32, and a piece of rows on the way; none where the rows are f32 in a GPU's memory and all of them
// are wanted.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/random.hpp"
#include "rows/row_source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

class TrainingSample {
 public:
  // Up to `most` of the rows. On a GPU it may be the rows themselves, which must outlive it then.
  TrainingSample(RowSource& rows, int64_t most, const CounterRng& rng, const Resources& resources);

  const MatrixView& view() const { return view_; }
  int64_t rows() const { return view_.rows(); }

  // Rows of length 1; zeros stay.
  void make_unit_length(const Resources& resources);
  // The sample on the host, to be changed: on a GPU nothing but a copy of it.
  MatrixBuffer on_host(const Resources& resources) &&;

 private:
  void draw_on_gpu(RowSource& rows, int64_t most, const CounterRng& rng, const Resources& resources);
  void take_room(int64_t count, int64_t cols, MemorySpace space, const Resources& resources);

  MatrixBuffer here_;
  std::shared_ptr<std::byte> there_;
  MatrixView view_;
};

}  // namespace kith
