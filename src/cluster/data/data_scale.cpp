#include "cluster/data/data_scale.hpp"

#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "rows/row_sample.hpp"
#include "rows/row_source.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace kith {
namespace {

// Beyond these a squared distance of many columns overflows f32, or loses digits.
constexpr int kLargestExponent = 55;
constexpr int kSmallestExponent = -45;
constexpr int kLastExponent = std::numeric_limits<float>::max_exponent - 1;  // of finite values
constexpr float kLargestFinite = std::numeric_limits<float>::max();
constexpr int64_t kScaleReadBytes = 64 << 10;  // of the source at a time

class ScaledSource final : public RowSource {
 public:
  // What is read comes from `outer`: the plan counts the scaled rows alone.
  ScaledSource(const KMeansRows& from, int exponent, int64_t most, const Resources& outer, const Resources& resources)
      : exponent_(exponent),
        part_(std::max<int64_t>(kScaleReadBytes / from.info.row_bytes(), 1)),
        outer_(outer),
        from_(from.open(part_, outer)),
        buffer_(DType::f32, std::min(most, from.info.rows), from.info.cols, "scaled rows", resources) {}

  RowsInfo info() const override {
    RowsInfo info(from_->info().rows, from_->info().cols, DType::f32);
    info.in_memory = false;
    return info;
  }

  MatrixView fetch(int64_t first, int64_t count) override {
    const MutableMatrixView out = buffer_.mutable_view().slice(0, count);
    const bool on_host = from_->space().host_readable();
    for (int64_t done = 0; done < count; done += part_) {
      const int64_t some = std::min(part_, count - done);
      if (on_host) {
        widen(from_->fetch(first + done, some), out.slice(done, some));
      } else {
        gather_as_floats(*from_, row_numbers(first + done, some), typed_row<float>(out, done), outer_);
      }
    }
    scale_values(out, exponent_);
    return out;
  }

  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources&) override {
    gather_as_floats(*from_, {rows, rows + count}, static_cast<float*>(out.data()), outer_);
    scale_values(out, exponent_);
  }

 private:
  static void widen(const MatrixView& rows, const MutableMatrixView& out) {
    for (int64_t i = 0; i < rows.rows(); ++i) widen_row(rows, i, typed_row<float>(out, i));
  }

  const int exponent_;
  const int64_t part_;  // rows of the source at a time
  const Resources outer_;
  std::unique_ptr<RowSource> from_;
  MatrixBuffer buffer_;
};

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
  ScaledSource source(rows, 0, most, resources, resources);
  ProgressMeter meter("survey", rows.info.rows, resources);
  float largest = 0;
  for (int64_t first = 0; first < rows.info.rows; first += most) {
    const int64_t count = std::min(most, rows.info.rows - first);
    largest = std::max(largest, largest_magnitude(source.fetch(first, count)));
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  return largest;
}

// How far values are apart, in one column.
struct Reach {
  float near = 0;  // of rows from each other, and from the nearest centre
  float far = 0;   // from any centre
};

// Of the finite values of a centre; values whose difference is not are as far apart as can be.
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
  // Near distances keep their digits; far ones stay finite if they can, else they are infinite, and never the nearest.
  const int exponent = std::clamp(kLargestExponent - far, kSmallestExponent - near, -near);
  if (exponent <= 0) return exponent;
  const float largest = std::max(largest_magnitude(centres), largest_magnitude(rows, resources));
  return std::clamp(kLastExponent - std::ilogb(largest), 0, exponent);
}

KMeansRows scaled_rows(const KMeansRows& rows, int exponent, const Resources& outer) {
  if (exponent == 0) return rows;
  KMeansRows scaled;
  scaled.info = RowsInfo(rows.info.rows, rows.info.cols, DType::f32);
  scaled.info.in_memory = false;
  scaled.open = [rows, exponent, outer](int64_t most, const Resources& resources) -> std::unique_ptr<RowSource> {
    return std::make_unique<ScaledSource>(rows, exponent, most, outer, resources);
  };
  return scaled;
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
  if (exponent == 0) return;
  constexpr auto kMost = static_cast<double>(kLargestFinite);
  const double scale = std::ldexp(1.0, exponent);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    auto* const row = typed_row<float>(rows, i);
    for (int64_t c = 0; c < rows.cols(); ++c) {
      if (!std::isfinite(row[c])) continue;
      row[c] = static_cast<float>(std::clamp(static_cast<double>(row[c]) * scale, -kMost, kMost));
    }
  }
}

}  // namespace kith
