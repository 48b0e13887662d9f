// Rows drawn for training, as f32, where they lie: in host memory, or in that of the GPU that holds the rows, if there
// is room. Which rows they are depends on neither.
//
// Memory: a sample as f32, and a piece of rows on the way; none where all rows of a GPU are wanted there, as f32 and
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
  // What happens to the sample.
  struct Use {
    std::function<Footprint()> footprint_on_gpu;  // of that work on a GPU; empty: the sample comes to the host
    bool changes_values = false;
  };
  // Draws up to `most` rows. On a GPU the sample may be the rows themselves, which must then outlive it.
  TrainingSample(RowSource& rows, int64_t most, const CounterRng& rng, const Use& use, const Resources& resources);

  const MatrixView& view() const { return view_; }
  int64_t rows() const { return view_.rows(); }

  // Rows of length 1; zeros stay.
  void make_unit_length(const Resources& resources);
  // The sample; only for one that came to the host.
  MatrixBuffer on_host() && { return std::move(own_).on_host(); }

 private:
  void draw_on_gpu(RowSource& rows, int64_t most, const CounterRng& rng, const Use& use, const Resources& resources);
  void take_room(int64_t count, int64_t cols, MemorySpace space, const Resources& resources);

  FloatRows own_;
  MatrixView view_;
};

// Training of an inverted file whose samples do not fit the memory limit: the drawn rows are read again in every pass
// instead of being held, and give the same centres and codes, bit for bit.
//
// Memory: 4 bytes for each drawn row, a piece of rows, and what k-means and the code keep for themselves.
// Whether a sample of so many rows as f32 leaves enough of the limit for what is done with it: `beside` at least.
bool sample_fits(int64_t rows, int64_t cols, const std::function<Footprint()>& beside, const Resources& resources);

// Up to `most` rows drawn from some.
struct RowDraw {
  RowSource& rows;
  int64_t most = 0;
  const CounterRng& rng;
};

// k-means over drawn rows, as f32, made unit length for cosine.
MatrixBuffer train_centres_streamed(const KMeansParams& params, Metric metric, const RowDraw& from,
                                    const KMeansInput& input, const Resources& resources);

// What a code is trained for: vectors as they are, or less their centre by the metric.
struct CodedVectors {
  MatrixView centres;  // none: vectors as they are
  Metric metric = Metric::l2;
};

// A code for up to `most` rows drawn from `rows`, held in memory where they fit.
std::shared_ptr<const Codec> train_code(const CodeRecipe& code, const CodedVectors& vectors, RowSource& rows,
                                        int64_t most, const CounterRng& rng, uint64_t seed, const Resources& resources);

// The least memory of both, on the host and on a GPU.
Footprint centre_training_footprint(const KMeansParams& params, const RowsInfo& rows, int64_t most,
                                    const Resources& resources);
Footprint code_training_footprint(const CodeRecipe& code, int64_t lists, Metric metric, const RowsInfo& rows,
                                  int64_t most, const Resources& resources);

}  // namespace kith
