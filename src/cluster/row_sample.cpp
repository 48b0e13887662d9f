#include "cluster/row_sample.hpp"

#include <kith/host_buffer.hpp>

#include "cluster/device_row_gather_cuda.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kith {

std::vector<uint32_t> sample_rows(const CounterRng& rng, int64_t rows, int64_t count, const Resources& resources) {
  const int64_t words = (rows + 63) / 64;
  const HostBuffer memory(words * 8, "drawing rows", resources);
  auto* const taken = memory.as<uint64_t>();
  std::fill_n(taken, words, uint64_t{0});
  for (int64_t j = rows - count; j < rows; ++j) {
    int64_t row = rng.below(static_cast<uint64_t>(j), static_cast<uint32_t>(j + 1));
    if ((taken[row / 64] >> (row % 64) & 1) != 0) row = j;
    taken[row / 64] |= uint64_t{1} << (row % 64);
  }
  std::vector<uint32_t> drawn;
  drawn.reserve(static_cast<size_t>(count));
  for (int64_t word = 0; word < words; ++word) {
    for (uint64_t rest = taken[word]; rest != 0; rest &= rest - 1) {
      drawn.push_back(static_cast<uint32_t>(word * 64 + std::countr_zero(rest)));
    }
  }
  return drawn;
}

std::optional<MatrixView> on_gpu(RowSource& source) {
  if (source.space().host_readable()) return std::nullopt;
  return source.fetch(0, source.rows());
}

void gather_as_floats(RowSource& source, const std::vector<uint32_t>& rows, float* out, const Resources& resources) {
  if (const std::optional<MatrixView> matrix = on_gpu(source)) {
    constexpr size_t kAtOnce = 4096;
    std::vector<uint32_t> some;
    std::vector<std::byte> bytes;
    const int64_t cols = matrix->cols();
    for (size_t first = 0; first < rows.size(); first += kAtOnce) {
      some.assign(rows.begin() + static_cast<int64_t>(first),
                  rows.begin() + static_cast<int64_t>(std::min(first + kAtOnce, rows.size())));
      bytes.resize(some.size() * static_cast<size_t>(cols * size_of(matrix->dtype())));
      const auto count = static_cast<int64_t>(some.size());
      gather_cuda(*matrix, some, bytes.data(), resources);
      const MatrixView stored(bytes.data(), matrix->dtype(), {count, cols, cols});
      for (int64_t i = 0; i < count; ++i, out += cols) widen_row(stored, i, out);
    }
    return;
  }
  for (const uint32_t row : rows) {
    const MatrixView one = source.fetch(row, 1);
    widen_row(one, 0, out);
    out += one.cols();
  }
}

void gather(RowSource& source, const std::vector<uint32_t>& rows, const MutableMatrixView& out,
            const Resources& resources) {
  if (const std::optional<MatrixView> matrix = on_gpu(source)) {
    return gather_cuda(*matrix, rows, static_cast<std::byte*>(out.data()), resources);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const MatrixView one = source.fetch(rows[i], 1);
    std::memcpy(out.row(static_cast<int64_t>(i)), one.row(0), static_cast<size_t>(one.cols() * size_of(one.dtype())));
  }
}

}  // namespace kith
