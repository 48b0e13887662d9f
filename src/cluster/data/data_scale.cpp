#include "cluster/data/data_scale.hpp"

#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kith {
namespace {

// Exponents beyond which squared distances of many columns overflow f32 or lose digits.
constexpr int kLargestExponent = 55;
constexpr int kSmallestExponent = -45;
constexpr int kLastExponent = std::numeric_limits<float>::max_exponent - 1;  // of finite values
constexpr float kLargestFinite = std::numeric_limits<float>::max();
constexpr int64_t kScaleReadBytes = 64 << 10;  // of the source at a time

void scale_row(float* row, int64_t cols, int exponent) {
  constexpr auto kMost = static_cast<double>(kLargestFinite);
  const double scale = std::ldexp(1.0, exponent);
  for (int64_t c = 0; c < cols; ++c) {
    if (std::isfinite(row[c]))
      row[c] = static_cast<float>(std::clamp(static_cast<double>(row[c]) * scale, -kMost, kMost));
  }
}

// Opens the rows times 2^exponent. Read buffers come from `outer`, since the plan counts only the scaled rows.
std::unique_ptr<RowSource> scaled_source(const KMeansRows& rows, int exponent, int64_t most, const Resources& outer,
                                         const Resources& resources) {
  const int64_t cols = rows.info.cols;
  const int64_t part = std::max<int64_t>(kScaleReadBytes / rows.info.row_bytes(), 1);
  GatheredSource::Step scale;
  if (exponent != 0) scale = [=](float* row, int64_t) { scale_row(row, cols, exponent); };
  auto source = std::make_unique<GatheredSource>(rows.open(part, outer), outer, std::move(scale));
  source->open(most, resources);
  return source;
}

float largest_magnitude(const MatrixView& rows) {
  float largest = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const auto* const row = typed_row<float>(rows, i);
    for (int64_t c = 0; c < rows.cols(); ++c) {
      if (std::isfinite(row[c])) largest = std::max(largest, std::fabs(row[c]));
    }
  }
  return largest;
}

float largest_magnitude(const KMeansRows& rows, const Resources& resources) {
  const int64_t most = std::max<int64_t>(kScaleReadBytes / rows.info.row_bytes(), 1);
  const std::unique_ptr<RowSource> source = scaled_source(rows, 0, most, resources, resources);
  ProgressMeter meter("survey", rows.info.rows, resources);
  float largest = 0;
  for (int64_t first = 0; first < rows.info.rows; first += most) {
    const int64_t count = std::min(most, rows.info.rows - first);
    largest = std::max(largest, largest_magnitude(source->fetch(first, count)));
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  return largest;
}

// Extents of the values, in one column.
struct Reach {
  float near = 0;  // of rows from each other, and from the nearest centre
  float far = 0;   // from any centre
};

// Distance of the farthest finite value of a centre from the origin. A difference that overflows is the largest f32.
float farthest_from(const float* centre, const std::vector<float>& origin) {
  const auto cols = static_cast<int64_t>(origin.size());
  const float all = farthest_apart(centre, origin.data(), cols);
  if (std::isfinite(all)) return all;
  float farthest = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const float value = origin[static_cast<size_t>(c)];
    if (!std::isfinite(centre[c]) || !std::isfinite(value)) continue;
    farthest = std::max(farthest, std::min(std::fabs(centre[c] - value), kLargestFinite));
  }
  return farthest;
}

Reach reach_of(const DataSample& sample, const MatrixView& centres) {
  float nearest = kLargestFinite;
  float farthest = 0;
  for (int64_t i = 0; i < centres.rows(); ++i) {
    const auto* const centre = typed_row<float>(centres, i);
    const float apart = farthest_from(centre, sample.origin);
    nearest = std::min(nearest, apart);
    farthest = std::max(farthest, apart);
  }
  Reach reach;
  reach.far = std::max(sample.largest, farthest);
  reach.near = centres.rows() == 0 ? reach.far : std::max(sample.largest, nearest);
  if (reach.near == 0) reach.near = reach.far;
  return reach;
}

}  // namespace

int scale_exponent(const KMeansRows& rows, const MatrixView& centres, const Resources& resources) {
  const DataSample sample = sample_data(*rows.open(1, resources), rows.info.cols, resources);
  return scale_exponent(rows, sample, centres, resources);
}

int scale_exponent(const KMeansRows& rows, const DataSample& sample, const MatrixView& centres,
                   const Resources& resources) {
  const Reach reach = reach_of(sample, centres);
  if (reach.far == 0) return 0;
  const int near = std::ilogb(reach.near);
  const int far = std::ilogb(reach.far);
  if (near >= kSmallestExponent && far <= kLargestExponent) return 0;
  // Small distances keep their digits; large ones stay finite if possible, else infinite, and never the nearest.
  const int exponent = std::clamp(kLargestExponent - far, kSmallestExponent - near, -near);
  if (exponent <= 0) return exponent;
  const float largest = std::max(largest_magnitude(centres), largest_magnitude(rows, resources));
  return std::clamp(kLastExponent - std::ilogb(largest), 0, exponent);
}

KMeansRows scaled_rows(const KMeansRows& rows, int exponent, const Resources& outer) {
  if (exponent == 0) return rows;
  return {GatheredSource::info_of(rows.info, rows.info.rows), [=](int64_t most, const Resources& resources) {
            return scaled_source(rows, exponent, most, outer, resources);
          }};
}

int64_t scaled_read_bytes(const RowsInfo& rows) {
  return rows.in_memory ? 0 : 2 * std::max(kScaleReadBytes, rows.row_bytes());
}

MatrixBuffer scaled_copy(const MatrixView& rows, int exponent, const Resources& resources) {
  MatrixBuffer copy(DType::f32, rows.rows(), rows.cols(), "scaled rows", resources);
  ViewSource source(rows);
  gather_as_floats(source, row_numbers(0, rows.rows()), static_cast<float*>(copy.mutable_view().data()), resources);
  scale_values(copy.mutable_view(), exponent);
  return copy;
}

void scale_values(const MutableMatrixView& rows, int exponent) {
  for (int64_t i = 0; exponent != 0 && i < rows.rows(); ++i)
    scale_row(typed_row<float>(rows, i), rows.cols(), exponent);
}

}  // namespace kith
