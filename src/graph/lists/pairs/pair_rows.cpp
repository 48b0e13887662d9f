#include "graph/lists/pairs/pair_rows.hpp"

#include "core/cpu_target.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/rounded_panels.hpp"
#include "rows/row_blocks.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 1024;
// With fewer columns the sums are no longer what takes the time.
constexpr int64_t kFewestRoundedColumns = 16;

// The first of many.
void prefetch_bytes(const void* from, int64_t count) {
  constexpr int64_t kLineBytes = 64;
  constexpr int64_t kMost = 16 * kLineBytes;
  for (int64_t at = 0; at < std::min(count, kMost); at += kLineBytes) {
    __builtin_prefetch(static_cast<const char*>(from) + at);
  }
}

}  // namespace

PanelFormat choose_pair_format(KeyKind kind, DType dtype, int64_t cols, const CpuExtensions& cpu) {
  const PanelFormat format = choose_panel_format(kind, dtype, dtype, cols, cpu);
  if (holds_bytes(format)) return format;
  const bool bytes = dtype == DType::u8 || dtype == DType::i8;
  if (bytes && is_product(kind) && kind != KeyKind::cosine && has_byte_product(cols, cpu)) {
    return dtype == DType::u8 ? PanelFormat::u8 : PanelFormat::i8;
  }
  const bool rounds =
      is_product(kind) && has_fast_rounded_product(cpu) && cols >= kFewestRoundedColumns && cols <= kMostRoundedColumns;
  return rounds ? PanelFormat::rounded : PanelFormat::f32;
}

PanelFormat choose_ordered_format(KeyKind kind, DType dtype, int64_t cols, const CpuExtensions& cpu) {
  const bool features = kind == KeyKind::chi_square && dtype == DType::f32 && has_fast_rounded_product(cpu) &&
                        cols >= kFewestRoundedColumns && kChiSquareFeatures * cols <= kMostRoundedColumns;
  return features ? PanelFormat::rounded : choose_pair_format(kind, dtype, cols, cpu);
}

PairRows::PairRows(const MatrixView& x, KeyKind kind, const Resources& resources)
    : PairRows(x, kind, Later(), resources) {
  prepare(0, x.rows(), resources);
}

PairRows::PairRows(const MatrixView& x, KeyKind kind, Later, const Resources& resources)
    : x_(x), kind_(kind), format_(choose_pair_format(kind, x.dtype(), x.cols(), cpu_extensions())) {
  if (format_ == PanelFormat::rounded) {
    bytes_ = HostArray<int8_t>(x.rows() * rounded_stride(), "rows rounded to bytes", resources);
    rounded_ = HostArray<Rounded>(x.rows(), "rows rounded to bytes", resources);
  } else if (format_ == PanelFormat::u8 || format_ == PanelFormat::i8) {
    sums_ = HostArray<ByteSums>(x.rows(), "the sums of rows", resources);
  }
}

void PairRows::prepare(int64_t first_row, int64_t count, const Resources& resources) {
  if (first_row == 0 && !counts_only(resources)) origin_ = choose_origin(kind_, x_.slice(0, count));
  const bool rounds = format_ == PanelFormat::rounded;
  const bool sums = format_ == PanelFormat::u8 || format_ == PanelFormat::i8;
  if (!rounds && !sums) return;
  const HostArray<float> scratch(resources.threads() * cols(), "rounding", resources);
  const auto prepare_some = [&](int64_t first, int64_t end, int slot) {
    for (int64_t row = first_row + first; row < first_row + end; ++row) {
      if (rounds) {
        widen_row(x_, row, scratch.data() + slot * cols());
        round(row, scratch.data() + slot * cols());
      } else {
        sums_[row] = byte_sums(format_, typed_row<uint8_t>(x_, row), cols());
      }
    }
  };
  for_row_blocks("prepare", count, resources.with_progress({}), prepare_some, kRowsPerTask);
}

PairRows::PairRows(const PairRows& rows, const uint32_t* order, const Resources& resources)
    : x_(rows.x_),
      kind_(rows.kind_),
      format_(rows.custom_ != nullptr
                  ? rows.format_
                  : choose_ordered_format(rows.kind_, rows.x_.dtype(), rows.cols(), cpu_extensions())),
      origin_(rows.origin_),
      custom_(rows.custom_),
      order_(order) {
  const bool rounds = format_ == PanelFormat::rounded;
  if (!rounds && format_ != PanelFormat::u8 && format_ != PanelFormat::i8) return;
  bytes_ = HostArray<int8_t>(x_.rows() * rounded_stride(), "rows in another order", resources);
  if (rounds) {
    rounded_ = HostArray<Rounded>(x_.rows(), "rows in another order", resources);
  } else {
    sums_ = HostArray<ByteSums>(x_.rows(), "rows in another order", resources);
  }
  std::vector<ChiSquareFeatures> maps(features() ? static_cast<size_t>(resources.threads()) : 0);
  std::vector<double> largest(maps.size(), 0.0);  // squared norms of features that each thread met
  const HostArray<float> scratch(features() ? resources.threads() * product_cols() : 0, "rounding", resources);
  if (features()) choose_features_origin();
  const auto prepare = [&](int64_t first, int64_t end, int slot) {
    constexpr int64_t kAhead = 16;  // rows on their way while one is copied
    for (int64_t place = first; place < end; ++place) {
      if (place + kAhead < end) rows.prefetch(order[place + kAhead]);
      int8_t* const to = bytes_.data() + place * rounded_stride();
      if (features()) {
        float* const mine = scratch.data() + slot * product_cols();
        const float* const row = typed_row<float>(x_, row_at(place));
        maps[static_cast<size_t>(slot)].of(row, cols(), mine);
        double squares = 0;
        for (int64_t c = 0; c < product_cols(); ++c) squares += static_cast<double>(mine[c]) * mine[c];
        if (std::isfinite(squares)) {  // others are as near as can be
          double& most = largest[static_cast<size_t>(slot)];
          most = std::max(most, squares);
        }
        round(place, mine);
      } else if (rounds) {
        std::copy_n(rows.rounded_bytes(order[place]), rounded_stride(), to);
        rounded_[place] = rows.rounded_[order[place]];
      } else {
        std::copy_n(reinterpret_cast<const int8_t*>(rows.bytes(order[place])), cols(), to);
        std::fill(to + cols(), to + rounded_stride(), int8_t{0});
        sums_[place] = rows.sums_[order[place]];
      }
    }
  };
  for_row_blocks("prepare", x_.rows(), resources.with_progress({}), prepare, kRowsPerTask);
  if (features()) features_error_ = feature_error(*std::max_element(largest.begin(), largest.end()));
}

// The mean of some rows' features: any other would be as correct.
void PairRows::choose_features_origin() {
  constexpr int64_t kSample = 512;
  const int64_t count = std::min(kSample, x_.rows());
  const auto width = static_cast<size_t>(product_cols());
  std::vector<float> values(width);
  std::vector<double> sums(width);
  ChiSquareFeatures map;
  for (int64_t i = 0; i < count; ++i) {
    map.of(typed_row<float>(x_, i * x_.rows() / count), cols(), values.data());
    std::transform(sums.begin(), sums.end(), values.begin(), sums.begin(), std::plus<>());
  }
  origin_.assign(width, 0.0f);
  for (size_t c = 0; c < width && count > 0; ++c) {
    const double mean = sums[c] / static_cast<double>(count);
    origin_[c] = std::isfinite(mean) ? static_cast<float>(mean) : 0.0f;
  }
}

// The vector in `values`, which are changed.
void PairRows::round(int64_t row, float* values) {
  const double squared = move_vector(product_kind(), origin_, values, values);
  const RoundedVector rounded = round_row(values, product_cols(), 1, bytes_.data() + row * rounded_stride());
  rounded_[row] = {rounded.scale, rounded.residual, rounded.sum, squared};
}

void PairRows::prefetch(int64_t row) const {
  const bool rounds = format_ == PanelFormat::rounded;
  if (bytes_.size() == 0) {
    prefetch_values(row);
  } else {
    prefetch_bytes(rounded_bytes(row), rounds ? rounded_stride() : cols());
  }
  if (rounds) __builtin_prefetch(&rounded_[row]);
  if (sums_.size() > 0) __builtin_prefetch(&sums_[row]);
}

void PairRows::prefetch_values(int64_t row) const { prefetch_bytes(x_.row(row_at(row)), cols() * size_of(x_.dtype())); }

}  // namespace kith
