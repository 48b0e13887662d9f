#include "rows/row_sample.hpp"

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "rows/rows_cuda.hpp"
#include "rows/stored_row.hpp"

#include <bit>
#include <cmath>
#include <numeric>

namespace kith {

std::vector<uint32_t> sample_rows(const CounterRng& rng, int64_t rows, int64_t count, const Resources& resources) {
  const HostArray<uint64_t> taken(divide_up(rows, 64), "drawing rows", resources);  // a bit for each
  if (is_counted_only(taken.data())) return std::vector<uint32_t>(static_cast<size_t>(count));
  std::fill(taken.begin(), taken.end(), uint64_t{0});
  for (int64_t j = rows - count; j < rows; ++j) {
    int64_t row = rng.below(static_cast<uint64_t>(j), static_cast<uint32_t>(j + 1));
    if ((taken[row / 64] >> (row % 64) & 1) != 0) row = j;
    taken[row / 64] |= uint64_t{1} << (row % 64);
  }
  std::vector<uint32_t> drawn;
  drawn.reserve(static_cast<size_t>(count));
  for (int64_t word = 0; word < taken.size(); ++word) {
    for (uint64_t bits = taken[word]; bits != 0; bits &= bits - 1) {
      drawn.push_back(static_cast<uint32_t>(word * 64 + std::countr_zero(bits)));
    }
  }
  return drawn;
}

std::vector<uint32_t> drawn_rows(const CounterRng& rng, int64_t rows, int64_t most, const Resources& resources) {
  return most < rows ? sample_rows(rng, rows, most, resources) : row_numbers(0, rows);
}

std::vector<uint32_t> row_numbers(int64_t first, int64_t count) {
  std::vector<uint32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<uint32_t>(first));
  return numbers;
}

std::optional<MatrixView> on_gpu(RowSource& source) {
  if (source.space().host_readable()) return std::nullopt;
  return source.fetch(0, source.rows());
}

namespace {

// The most rows gathered at once; a GPU is waited for after each batch.
int64_t most_gathered(const RowsInfo& rows) {
  return std::max<int64_t>(1, (rows.in_memory ? 2 << 20 : 64 << 10) / rows.row_bytes());
}

}  // namespace

Footprint gathering_footprint(const RowsInfo& rows, int64_t count, const Resources& resources) {
  if (rows.space.host_readable()) return {};
  const std::vector<uint32_t> some(static_cast<size_t>(std::min(count, most_gathered(rows))));
  return counted(resources,
                 [&](const Resources& used) { gather_cuda(rows.counted_view(), some, counted_only_memory(), used); });
}

void gather_as_floats(RowSource& source, const std::vector<uint32_t>& rows, float* out, const Resources& resources) {
  const RowsInfo info = source.info();
  if (info.in_memory && info.space.host_readable()) {
    for (const uint32_t row : rows) {
      widen_row(source.fetch(row, 1), 0, out);
      out += info.cols;
    }
    return;
  }
  const int64_t most = most_gathered(info);
  std::vector<std::byte> bytes;
  for (auto first = rows.begin(); first != rows.end();) {
    const auto end = first + std::min<int64_t>(most, rows.end() - first);
    const std::vector<uint32_t> some(first, end);
    const auto count = static_cast<int64_t>(some.size());
    if (info.dtype == DType::f32) {
      gather(source, some, MutableMatrixView(out, count, info.cols), resources);
      out += count * info.cols;
    } else {
      bytes.resize(static_cast<size_t>(count * info.row_bytes()));
      const MutableMatrixView stored(bytes.data(), info.dtype, {count, info.cols, info.cols});
      gather(source, some, stored, resources);
      for (int64_t i = 0; i < count; ++i, out += info.cols) widen_row(stored, i, out);
    }
    first = end;
  }
}

void gather(RowSource& source, const std::vector<uint32_t>& rows, const MutableMatrixView& out,
            const Resources& resources) {
  if (const std::optional<MatrixView> matrix = on_gpu(source)) {
    return gather_cuda(*matrix, rows, static_cast<std::byte*>(out.data()), resources);
  }
  if (is_counted_only(out.data())) return;
  source.gather(rows.data(), static_cast<int64_t>(rows.size()), out, resources);
}

MatrixView GatheredSource::fetch(int64_t first, int64_t count) {
  constexpr int64_t kListed = 16384;  // rows at a time: their numbers are not in anybody's plan
  const MutableMatrixView out = buffer_.mutable_view().slice(0, count);
  for (int64_t at = 0; at < count; at += kListed) {
    const int64_t some = std::min(kListed, count - at);
    take(row_numbers(first + at, some), out.slice(at, some));
  }
  return out;
}

void GatheredSource::take(const std::vector<uint32_t>& places, const MutableMatrixView& out) {
  std::vector<uint32_t> numbers = places;
  for (uint32_t& number : numbers) number = list_.empty() ? number : list_[number];
  if (dtype_ == DType::f32) {
    gather_as_floats(from_, numbers, static_cast<float*>(out.data()), reading_);
  } else {
    kith::gather(from_, numbers, out, reading_);
  }
  for (int64_t i = 0; step_ && i < out.rows(); ++i) step_(typed_row<float>(out, i), places[static_cast<size_t>(i)]);
}

int64_t sampled_rows(int64_t rows) { return std::min(std::clamp<int64_t>(rows / 8, 32, 256), rows); }

std::vector<float> sample_mean(RowSource& rows, int64_t cols) {
  return sample_mean(rows, cols, sampled_rows(rows.rows()));
}

std::vector<float> sample_mean(RowSource& rows, int64_t cols, int64_t samples) {
  std::vector<float> means(static_cast<size_t>(cols), 0.0f);
  std::vector<double> sums(means.size(), 0.0);
  std::vector<float> row(means.size());
  for (int64_t s = 0; s < samples; ++s) {
    const float* const values = floats_of(rows.fetch(s * rows.rows() / samples, 1), 0, row.data());
    for (size_t c = 0; c < row.size(); ++c) sums[c] += values[c];
  }
  for (size_t c = 0; c < means.size() && samples > 0; ++c) {
    const auto mean = static_cast<float>(sums[c] / static_cast<double>(samples));
    if (std::isfinite(mean)) means[c] = mean;
  }
  return means;
}

}  // namespace kith
