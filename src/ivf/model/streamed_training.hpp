// Training of an inverted file whose samples do not fit the memory limit: the drawn rows are read again in every pass
// instead of being held, and give the same centres and codes, bit for bit.
//
// Memory: 4 bytes for each drawn row, a piece of rows, and what k-means and the code keep for themselves.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/random.hpp"
#include "quantize/codec.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Whether a sample of so many rows as f32 leaves enough of the limit for what is done with it.
bool sample_fits(int64_t rows, int64_t cols, const Resources& resources);

// k-means over up to `most` rows drawn from `rows`, as f32, made unit length for cosine.
MatrixBuffer train_centres_streamed(const KMeansParams& params, Metric metric, RowSource& rows, int64_t most,
                                    const CounterRng& rng, const Resources& resources);

// What a code is trained for: vectors as they are, or less their centre by the metric.
struct CodedVectors {
  MatrixView centres;  // none: vectors as they are
  Metric metric = Metric::l2;
};

// A code for up to `most` rows drawn from `rows`.
std::shared_ptr<const Codec> train_code_streamed(const CodeRecipe& code, const CodedVectors& vectors, RowSource& rows,
                                                 int64_t most, const CounterRng& rng, uint64_t seed,
                                                 const Resources& resources);

// What the two take on the host at least.
int64_t centre_training_bytes(const KMeansParams& params, const RowsInfo& rows, int64_t most,
                              const Resources& resources);
int64_t code_training_bytes(const CodeRecipe& code, int64_t lists, Metric metric, const RowsInfo& rows, int64_t most,
                            const Resources& resources);

}  // namespace kith
