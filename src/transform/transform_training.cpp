#include "transform/transform_training.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/within_limits.hpp"
#include "transform/opq.hpp"
#include "transform/pca.hpp"
#include "transform/random_rotation.hpp"
#include "transform/training_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kTrainingRows = 65'536;
constexpr int64_t kTrainingRowsAColumn = 16;  // of PCA: wide vectors have more to be learnt

std::vector<float> as_floats(const Dense& matrix, int64_t rows) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows * matrix.cols()));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) values.push_back(static_cast<float>(matrix(i, j)));
  }
  return values;
}

TransformParts shift_by(const std::vector<float>& mean) {
  const auto cols = static_cast<int64_t>(mean.size());
  TransformParts parts{TransformParts::Kind::shift, "Centre", cols, cols, {}, {}};
  for (const float value : mean) parts.offset.push_back(0.0f - value);
  return parts;
}

int64_t most_rows(TransformKind kind, int64_t cols) {
  return kind == TransformKind::opq ? kTrainingRows : std::max(kTrainingRows, kTrainingRowsAColumn * cols);
}

std::vector<TransformParts> train_step(const TransformSpec& spec, const TrainingRows* rows, int64_t in, uint64_t seed,
                                       const Resources& resources) {
  const int64_t out = transformed_cols(spec, in);
  switch (spec.kind) {
    case TransformKind::pca: {
      const PrincipalAxes found = principal_axes(*rows, resources);
      return {shift_by(found.mean), {TransformParts::Kind::linear, "PCA", in, out, as_floats(found.axes, out), {}}};
    }
    case TransformKind::centring: return {shift_by(column_means(*rows, resources))};
    case TransformKind::random_rotation: {
      const Dense matrix = random_rotation(in, out, seed, resources.with_progress({}));
      return {{TransformParts::Kind::linear, "RR", in, out, as_floats(matrix, out), {}}};
    }
    case TransformKind::unit_length: return {{TransformParts::Kind::unit_length, "L2norm", in, in, {}, {}}};
    case TransformKind::padding: return {{TransformParts::Kind::padding, "Pad", in, out, {}, {}}};
    case TransformKind::opq: {
      const Dense matrix = optimized_rotation(*rows, {out, spec.parts}, seed, resources);
      return {{TransformParts::Kind::linear, "OPQ", in, out, as_floats(matrix, out), {}}};
    }
  }
  throw InvalidArgument("unknown transform");
}

// Of one step: ten square matrices, and parts of their products, are more than any has at once.
int64_t step_bytes(const TransformSpec& spec, int64_t stored_cols, int64_t in, int64_t rows, int threads) {
  constexpr int64_t kPieceRows = 4096;
  constexpr int64_t kScratch = 1 << 20;       // of a thread
  constexpr int64_t kProductParts = 4 << 20;  // sums of a product that several tasks make
  const int64_t out = transformed_cols(spec, in);
  const int64_t widest = std::max(in, out);
  int64_t bytes = 10 * widest * widest * 8 + kProductParts + threads * kScratch;
  if (!needs_rows(spec.kind)) return bytes;
  const int64_t count = std::min(rows, most_rows(spec.kind, in));
  const int64_t together = spec.kind == TransformKind::opq ? count : std::min(count, kPieceRows);
  bytes += count * 4 + together * 4 * (stored_cols + 2 * in);
  if (spec.kind == TransformKind::opq) bytes += count * 4 * (in + out) + 2 * (count * spec.parts + 16 * 256 * out);
  return bytes;
}

}  // namespace

int64_t transform_training_bytes(const std::vector<TransformSpec>& specs, const RowsInfo& rows, int threads) {
  int64_t made = 0;
  int64_t most = 0;
  int64_t cols = rows.cols;
  for (const TransformSpec& spec : specs) {
    most = std::max(most, step_bytes(spec, rows.cols, cols, rows.rows, threads));
    const int64_t out = transformed_cols(spec, cols);
    made += 16 * (cols + 1) * (out + 1);
    cols = out;
  }
  return most + made;
}

namespace {

TransformChain train_steps(const std::vector<TransformSpec>& specs, RowSource& source, uint64_t seed,
                           const Resources& resources) {
  int64_t cols = source.info().cols;
  TransformChain chain;
  for (size_t s = 0; s < specs.size(); ++s) {
    const uint64_t own_seed = seed + 0x9E3779B97F4A7C15u * s;  // two rotations are two
    std::unique_ptr<TrainingRows> rows;
    if (needs_rows(specs[s].kind)) {
      if (source.rows() == 0)
        throw InvalidArgument("a transform cannot be trained on no rows; there must be at least one");
      rows = std::make_unique<TrainingRows>(source, chain, most_rows(specs[s].kind, cols), own_seed, resources);
    }
    for (TransformParts& part : train_step(specs[s], rows.get(), cols, own_seed, resources)) {
      cols = part.out;
      chain = chain.then(Transform::from_parts(std::move(part), resources));
    }
  }
  return chain;
}

}  // namespace

TransformChain train_transforms(const std::vector<TransformSpec>& specs, RowSource& source, uint64_t seed,
                                const Resources& resources) {
  const DefaultFloatMode mode;
  (void)transformed_cols(specs, source.info().cols);
  return within_limits(
      "training the transform", resources,
      [&] { return Footprint{transform_training_bytes(specs, source.info(), resources.threads())}; },
      [&] { return train_steps(specs, source, seed, resources); });
}

}  // namespace kith
