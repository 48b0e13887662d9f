#include "transform/training_rows.hpp"

#include "core/host_array.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"

namespace kith {
namespace {

constexpr uint64_t kSampleStream = 0x73616D70;

}  // namespace

TrainingRows::TrainingRows(RowSource& source, const TransformChain& before, int64_t most, uint64_t seed,
                           const Resources& resources)
    : source_(source),
      before_(before),
      resources_(resources.with_progress({}).with_device(Device::cpu())),
      numbers_(drawn_rows(CounterRng(seed, kSampleStream), source.rows(), most, resources)),
      cols_(before.empty() ? source.info().cols : before.out()) {}

std::optional<MatrixView> TrainingRows::on_gpu() const {
  return before_.empty() ? kith::on_gpu(source_) : std::nullopt;
}

Footprint TrainingRowsShape::fetching(int64_t count, const Resources& resources) const {
  if (before.empty()) return {};
  return array_footprint<float>(count, stored_cols)
      .beside(transform_footprint(before, {count, stored_cols, DType::f32}, resources.with_device(Device::cpu())));
}

void TrainingRows::fetch(int64_t first, int64_t count, float* out) const {
  const std::vector<uint32_t> some(numbers_.begin() + first, numbers_.begin() + first + count);
  const int64_t stored_cols = source_.info().cols;
  const HostArray<float> stored(before_.empty() ? 0 : count * stored_cols, "training rows", resources_);
  float* const as_stored = before_.empty() ? out : stored.data();
  gather_as_floats(source_, some, as_stored, resources_);
  const MatrixView view(as_stored, count, stored_cols);
  refuse_untrainable(view, {0, some.data()}, resources_);
  if (!before_.empty()) before_.apply(view, MutableMatrixView(out, count, cols_), resources_);
}

}  // namespace kith
