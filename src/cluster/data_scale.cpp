#include "cluster/data_scale.hpp"

#include "cluster/row_sample.hpp"
#include "rows/row_source.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace kith {
namespace {

// Beyond these a squared distance of many columns overflows f32, or loses digits.
constexpr int kLargestExponent = 55;
constexpr int kSmallestExponent = -45;

class ScaledSource final : public RowSource {
 public:
  ScaledSource(const KMeansRows& from, int exponent, int64_t most, const Resources& resources)
      : exponent_(exponent),
        part_(std::max<int64_t>(most / 4, 1)),
        resources_(resources),
        from_(from.open(part_, resources)),
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
        std::vector<uint32_t> numbers(static_cast<size_t>(some));
        std::iota(numbers.begin(), numbers.end(), static_cast<uint32_t>(first + done));
        gather_as_floats(*from_, numbers, reinterpret_cast<float*>(out.row(done)), resources_);
      }
    }
    scale_values(out, exponent_);
    return out;
  }

  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    gather_as_floats(*from_, {rows, rows + count}, static_cast<float*>(out.data()), resources);
    scale_values(out, exponent_);
  }

 private:
  static void widen(const MatrixView& rows, const MutableMatrixView& out) {
    for (int64_t i = 0; i < rows.rows(); ++i) widen_row(rows, i, reinterpret_cast<float*>(out.row(i)));
  }

  const int exponent_;
  const int64_t part_;  // rows of the source at a time
  const Resources resources_;
  std::unique_ptr<RowSource> from_;
  MatrixBuffer buffer_;
};

}  // namespace

int scale_exponent(float largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  const int exponent = std::ilogb(largest);
  return exponent > kLargestExponent || exponent < kSmallestExponent ? -exponent : 0;
}

KMeansRows scaled_rows(const KMeansRows& rows, int exponent) {
  if (exponent == 0) return rows;
  KMeansRows scaled;
  scaled.info = RowsInfo(rows.info.rows, rows.info.cols, DType::f32);
  scaled.info.in_memory = false;
  scaled.open = [rows, exponent](int64_t most, const Resources& resources) -> std::unique_ptr<RowSource> {
    return std::make_unique<ScaledSource>(rows, exponent, most, resources);
  };
  return scaled;
}

MatrixBuffer scaled_copy(const MatrixView& rows, int exponent, const Resources& resources) {
  MatrixBuffer copy(DType::f32, rows.rows(), rows.cols(), "scaled rows", resources);
  ViewSource source(rows);
  std::vector<uint32_t> numbers(static_cast<size_t>(rows.rows()));
  std::iota(numbers.begin(), numbers.end(), 0u);
  gather_as_floats(source, numbers, static_cast<float*>(copy.mutable_view().data()), resources);
  scale_values(copy.mutable_view(), exponent);
  return copy;
}

void scale_values(const MutableMatrixView& rows, int exponent) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    auto* const row = reinterpret_cast<float*>(rows.row(i));
    for (int64_t c = 0; c < rows.cols(); ++c) {
      row[c] = static_cast<float>(std::ldexp(static_cast<double>(row[c]), exponent));
    }
  }
}

}  // namespace kith
