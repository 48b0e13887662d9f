#include "transform/training_rows.hpp"

#include "rows/row_sample.hpp"
#include "core/host_array.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr uint64_t kSampleStream = 0x73616D70;

}  // namespace

TrainingRows::TrainingRows(RowSource& source, const TransformChain& before, int64_t most, uint64_t seed,
                           const Resources& resources)
    : source_(source),
      before_(before),
      resources_(resources.with_progress({}).with_device(Device::cpu())),
      cols_(before.empty() ? source.info().cols : before.out()) {
  const int64_t rows = source.rows();
  if (most < rows) {
    numbers_ = sample_rows(CounterRng(seed, kSampleStream), rows, most, resources);
  } else {
    numbers_.resize(static_cast<size_t>(rows));
    std::iota(numbers_.begin(), numbers_.end(), 0u);
  }
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
