#include "quantize/additive/training_sample.hpp"

#include <kith/error.hpp>

#include "cluster/row_sample.hpp"
#include "quantize/product/product_training.hpp"
#include "rows/finite_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr uint64_t kSampleStream = 0x6C737173;

}  // namespace

void check_training_rows(std::string_view what, int64_t rows, int bits, const Resources& resources) {
  const int64_t count = int64_t{1} << bits;
  if (rows < count) {
    throw InvalidArgument(
        fmt::format("{} rows cannot train books of {} codewords; give at least {} rows ({} train well), or fewer bits",
                    rows, count, count, kFewRowsPerCodeword * count));
  }
  if (rows < kFewRowsPerCodeword * count) {
    resources.log(LogLevel::warning, fmt::format("{}: {} rows train books of {} codewords; {} or more train well", what,
                                                 rows, count, kFewRowsPerCodeword * count));
  }
}

HostArray<float> training_sample(RowSource& source, int64_t most, uint64_t seed, const Resources& resources) {
  const int64_t all = source.rows();
  const int64_t count = std::min(all, most);
  HostArray<float> values(count * source.info().cols, "training rows", resources);
  std::vector<uint32_t> drawn(static_cast<size_t>(count));
  if (count < all) {
    drawn = sample_rows(CounterRng(seed, kSampleStream), all, count, resources);
  } else {
    std::iota(drawn.begin(), drawn.end(), 0u);
  }
  gather_as_floats(source, drawn, values.data(), resources);
  refuse_untrainable(MatrixView(values.data(), count, source.info().cols), {0, drawn.data()},
                     resources.with_progress({}));
  // Residuals of such values would be infinite.
  constexpr float kMost = std::numeric_limits<float>::max() / 4;
  const auto far = std::find_if(values.begin(), values.end(), [](float value) { return std::abs(value) > kMost; });
  if (far != values.end()) {
    throw InvalidArgument(
        fmt::format("training row {} holds {}: what codewords leave of it is more than f32 holds; scale "
                    "the vectors down",
                    drawn[static_cast<size_t>((far - values.begin()) / source.info().cols)], *far));
  }
  return values;
}

}  // namespace kith
