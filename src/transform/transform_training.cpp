#include "transform/transform_training.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
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
  using Kind = TransformParts::Kind;
  const int64_t out = transformed_cols(spec, in);
  switch (spec.kind) {
    case TransformKind::pca: {
      const PrincipalAxes found = principal_axes(*rows, resources);
      return {shift_by(found.mean), {Kind::linear, "PCA", in, out, as_floats(found.axes, out), {}}};
    }
    case TransformKind::centring: return {shift_by(column_means(*rows, resources))};
    case TransformKind::random_rotation: {
      const Dense matrix = random_rotation(in, out, seed, resources.with_progress({}));
      return {{Kind::linear, "RR", in, out, as_floats(matrix, out), {}}};
    }
    case TransformKind::unit_length: return {{Kind::unit_length, "L2norm", in, in, {}, {}}};
    case TransformKind::padding: return {{Kind::padding, "Pad", in, out, {}, {}}};
    case TransformKind::opq: {
      const Dense matrix = optimized_rotation(*rows, {out, spec.parts}, seed, resources);
      return {{Kind::linear, "OPQ", in, out, as_floats(matrix, out), {}}};
    }
  }
  throw InvalidArgument("unknown transform");
}

}  // namespace

TransformChain train_transforms(const std::vector<TransformSpec>& specs, RowSource& source, uint64_t seed,
                                const Resources& resources) {
  const DefaultFloatMode mode;
  int64_t cols = source.info().cols;
  (void)transformed_cols(specs, cols);
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

}  // namespace kith
