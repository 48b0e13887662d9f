// Rows drawn for training, as f32, in host memory or, if there is room, in that of the GPU that holds the rows. Which
// rows are drawn depends on neither.
//
// Memory: the sample as f32, and a piece of rows being converted; none if all rows of a GPU are used there, as f32 and
// unchanged.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/random.hpp"
#include "quantize/codec.hpp"
#include "rows/float_rows.hpp"
#include "rows/row_source.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace kith {

class TrainingSample {
 public:
  // What the sample is used for.
  struct Use {
    std::function<Footprint()> footprint_on_gpu;  // memory of that use on a GPU; empty: the sample goes to the host
    bool changes_values = false;
  };
  // Draws up to `most` rows. On a GPU the sample may be a view of the rows, which must then outlive it.
  TrainingSample(RowSource& rows, int64_t most, const CounterRng& rng, const Use& use, const Resources& resources);

  const MatrixView& view() const { return view_; }
  int64_t rows() const { return view_.rows(); }

  // Normalizes the rows; zero rows stay zero.
  void make_unit_length(const Resources& resources);
  // The sample; must be in host memory.
  MatrixBuffer on_host() && { return std::move(own_).on_host(); }

 private:
  void draw_on_gpu(RowSource& rows, int64_t most, const CounterRng& rng, const Use& use, const Resources& resources);
  void take_room(int64_t count, int64_t cols, MemorySpace space, const Resources& resources);

  FloatRows own_;
  MatrixView view_;
};

// Training of an inverted file whose samples do not fit the memory limit: the drawn rows are read again in every pass
// instead of being kept, and yield the same centres and codes, bit for bit.
//
// Memory: 4 bytes for each drawn row, a piece of rows, and the memory of k-means and of the code's training.
// Whether a sample of that many rows as f32 leaves enough memory for its use, which needs at least `beside`.
bool sample_fits(int64_t rows, int64_t cols, const std::function<Footprint()>& beside, const Resources& resources);

// A draw of up to `most` rows.
struct RowDraw {
  RowSource& rows;
  int64_t most = 0;
  const CounterRng& rng;
};

// k-means over drawn rows, as f32, normalized for cosine.
MatrixBuffer train_centres_streamed(const KMeansParams& params, Metric metric, const RowDraw& from,
                                    const KMeansInput& input, const Resources& resources);

// The vectors that a code is trained on: the rows, or the rows minus their nearest centre by the metric.
struct CodedVectors {
  MatrixView centres;  // empty: the rows themselves
  Metric metric = Metric::l2;
};

// Trains a code on up to `most` rows drawn from `rows`, kept in memory if they fit.
std::shared_ptr<const Codec> train_code(const CodeRecipe& code, const CodedVectors& vectors, RowSource& rows,
                                        int64_t most, const CounterRng& rng, uint64_t seed, const Resources& resources);

// The least memory of each, on the host and on a GPU.
Footprint centre_training_footprint(const KMeansParams& params, const RowsInfo& rows, int64_t most,
                                    const Resources& resources);
Footprint code_training_footprint(const CodeRecipe& code, int64_t lists, Metric metric, const RowsInfo& rows,
                                  int64_t most, const Resources& resources);

}  // namespace kith
