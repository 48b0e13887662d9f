#include "draws.hpp"

#include "device_memory.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace hashes {
namespace {

using kith::DType;
using kith::Metric;

// The sign, exponent and leading bits of an f32, rounded towards zero. Below f16's normal numbers there is zero.
uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const int exponent = static_cast<int>((bits >> 23) & 0xff);
  const auto fraction = static_cast<uint16_t>((bits >> 13) & 0x3ff);
  if (exponent == 0xff) return sign | 0x7c00 | (std::isnan(value) ? 0x200 : 0);
  if (exponent > 127 + 15) return sign | 0x7bff;
  if (exponent < 127 - 14) return sign;
  return static_cast<uint16_t>(sign | ((exponent - 127 + 15) << 10) | fraction);
}

void store(float value, DType dtype, std::byte* to) {
  const auto put = [to](auto stored) { std::copy_n(reinterpret_cast<const std::byte*>(&stored), sizeof stored, to); };
  switch (dtype) {
    case DType::f32: return put(value);
    case DType::f16: return put(half_bits(value));
    case DType::bf16: return put(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    case DType::u8: return put(static_cast<uint8_t>(static_cast<int32_t>(value * 24)));
    case DType::i8: return put(static_cast<int8_t>(static_cast<int32_t>(value * 24) % 128));
    case DType::f64: return put(static_cast<double>(value));
  }
}

}  // namespace

Draws::Draws(uint64_t seed, std::string_view entry_point, int64_t index) : key_(mixed(seed)) {
  for (const char letter : entry_point) key_ = mixed(key_ ^ static_cast<uint8_t>(letter));
  key_ = mixed(key_ ^ static_cast<uint64_t>(index));
}

float Source::value(int64_t row, int64_t col) const {
  const auto drawn = [this](uint64_t a, int64_t b) {
    return mixed(key ^ mixed(a * 0x10001 + static_cast<uint64_t>(b) + 1));
  };
  // Four numbers of 22 bits, less their mean: exact in f32.
  const auto bell = [&](uint64_t a, int64_t b) {
    const uint64_t low = drawn(a, b);
    const uint64_t high = mixed(low);
    const uint64_t sum = (low & 0x3fffff) + ((low >> 22) & 0x3fffff) + (high & 0x3fffff) + ((high >> 22) & 0x3fffff);
    return static_cast<float>(static_cast<int64_t>(sum) - 0x7fffff) * 0x1p-22f;
  };
  const auto number = static_cast<uint64_t>(row);
  constexpr uint64_t kShared = uint64_t{1} << 40;  // rows that all rows have in common
  float value = 0;
  switch (pattern) {
    case Pattern::uniform:
      value = static_cast<float>(static_cast<int64_t>(drawn(number, col) >> 40) - 0x800000) * 0x1p-23f;
      break;
    case Pattern::bell: value = bell(number, col); break;
    case Pattern::clusters: value = 4 * bell(kShared + drawn(number, -1) % 8, col) + 0.25f * bell(number, col); break;
    case Pattern::sparse: value = drawn(number, col) % 10 == 0 ? bell(number, col) : 0.0f; break;
    case Pattern::ties: value = static_cast<float>(static_cast<int64_t>(drawn(number, col) % 5) - 2); break;
    case Pattern::equal: value = bell(kShared, col); break;
    case Pattern::duplicates: value = bell(kShared + drawn(number, -1) % 5, col); break;
    case Pattern::far: value = 1000 + bell(number, col); break;
    case Pattern::sorted: value = static_cast<float>(row) * 0.125f + bell(number, col) * 0.0625f; break;
    case Pattern::zeros: break;
    case Pattern::infinite: {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      const uint64_t which = drawn(number, col + 100000) % 40;
      value = which == 0   ? kInfinity
              : which == 1 ? -kInfinity
              : which == 2 ? std::numeric_limits<float>::quiet_NaN()
                           : bell(number, col);
      break;
    }
  }
  return negative ? value : std::abs(value);
}

Rows::Rows(const Source& source, DType dtype, int64_t first, int64_t rows, int64_t cols, int64_t gap)
    : shape_{rows, cols, cols + gap}, dtype_(dtype) {
  const int64_t size = kith::size_of(dtype);
  values_.assign(static_cast<size_t>(std::max<int64_t>(1, rows * shape_.row_stride) * size), std::byte{0x5a});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      store(source.value(first + i, j), dtype, values_.data() + (i * shape_.row_stride + j) * size);
    }
  }
}

void Rows::move_to_device() {
  if (has_device()) on_device_ = copied_to_device(values_.data(), static_cast<int64_t>(values_.size()));
}

kith::MatrixView Rows::view() const {
  return on_device_ ? kith::MatrixView(on_device_.get(), dtype_, shape_, kith::MemorySpace::cuda(0)) : host();
}

kith::MatrixView Rows::host() const { return {values_.data(), dtype_, shape_}; }

DrawnFilter draw_filter(Draws& draws, int64_t rows, const std::vector<int64_t>& ids) {
  DrawnFilter drawn;
  const int64_t form = draws.between(0, 2);
  const int percent = draws.of({0, 2, 10, 50, 90, 100});
  std::vector<uint8_t> keep(static_cast<size_t>(rows));
  for (uint8_t& one : keep) one = draws.chance(percent) ? 1 : 0;
  if (form == 0) {
    drawn.bytes = keep;
    drawn.bytes.push_back(0);  // so that there is memory for no rows
    drawn.filter = kith::RowFilter::mask(drawn.bytes.data(), rows);
  } else if (form == 1) {
    drawn.bytes.assign(static_cast<size_t>(rows / 8 + 1), 0);
    for (int64_t i = 0; i < rows; ++i) {
      if (keep[static_cast<size_t>(i)] != 0)
        drawn.bytes[static_cast<size_t>(i / 8)] |= static_cast<uint8_t>(1 << (i % 8));
    }
    drawn.filter = kith::RowFilter::bits(drawn.bytes.data(), rows);
  } else {
    for (int64_t i = rows - 1; i >= 0; --i) {
      if (keep[static_cast<size_t>(i)] != 0) drawn.numbers.push_back(ids.empty() ? i : ids[static_cast<size_t>(i)]);
    }
    const auto count = static_cast<int64_t>(drawn.numbers.size());
    if (count > 0) drawn.numbers.push_back(drawn.numbers[0]);  // one of them twice
    drawn.numbers.reserve(1);
    drawn.filter = kith::RowFilter::rows(drawn.numbers.data(), static_cast<int64_t>(drawn.numbers.size()));
  }
  return drawn;
}

int64_t draw_rows(Draws& draws) {
  return draws.chance(50) ? draws.of<int64_t>({1,   2,   3,   15,  16,  17,  31,  32,  33,  63,   64,   65,
                                               127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025})
                          : draws.between(1, 700);
}

int64_t draw_cols(Draws& draws) {
  return draws.chance(70)
             ? draws.of<int64_t>({1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128})
             : draws.between(1, 128);
}

int64_t draw_k(Draws& draws, int64_t rows) {
  return draws.chance(20) ? rows + draws.between(0, 3)
                          : draws.of<int64_t>({1, 2, 3, 5, 8, 10, 15, 16, 17, 32, 33, 64, 100});
}

Metric draw_metric(Draws& draws) {
  return draws.of({Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1, Metric::linf,
                   Metric::chi_square, Metric::hamming});
}

DType draw_dtype(Draws& draws, Metric metric) {
  const DType dtype = draws.of({DType::f32, DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8});
  return metric == Metric::hamming ? DType::u8 : dtype;
}

Source draw_source(Draws& draws, Metric metric) {
  Source source;
  source.pattern =
      draws.of({Pattern::uniform, Pattern::bell, Pattern::bell, Pattern::clusters, Pattern::clusters, Pattern::sparse,
                Pattern::ties, Pattern::equal, Pattern::duplicates, Pattern::far, Pattern::sorted, Pattern::zeros});
  source.key = draws.bits();
  source.negative = metric != Metric::chi_square;
  return source;
}

Source draw_plain_source(Draws& draws) {
  return {.pattern = draws.of({Pattern::uniform, Pattern::bell, Pattern::clusters, Pattern::clusters, Pattern::far}),
          .key = draws.bits()};
}

SearchData draw_search_data(Draws& draws, Metric metric, const SearchShape& shape) {
  const Source source = draw_source(draws, metric);
  const DType dtype = draw_dtype(draws, metric);
  const DType others = draws.chance(25) ? draw_dtype(draws, metric) : dtype;
  const int64_t gaps[2] = {draws.chance(15) ? draws.between(1, 5) : 0, draws.chance(15) ? draws.between(1, 5) : 0};
  SearchData data{metric, Rows(source, dtype, 0, shape.rows, shape.cols, gaps[0]),
                  Rows(source, others, shape.rows, shape.queries, shape.cols, gaps[1])};
  if (draws.chance(30)) data.base.move_to_device();
  if (draws.chance(30)) data.queries.move_to_device();
  return data;
}

}  // namespace hashes
