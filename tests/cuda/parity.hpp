// Data and comparisons for the tests that search on a GPU and on the CPU and expect the same bytes.
#pragma once

#include <kith/device.hpp>
#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include "core/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kith {

// Skips, saying so, where there is no GPU.
class OnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << "no CUDA device here, or a build without CUDA";
  }
};

inline ResourceOptions cuda_options() {
  ResourceOptions options;
  options.device = Device::cuda(0);
  return options;
}

inline Resources on_cpu() {
  ResourceOptions options;
  options.device = Device::cpu();
  return Resources(options);
}
inline Resources on_cuda() { return Resources(cuda_options()); }

// Vectors of either dtype, with unused elements between the rows where asked for.
struct Vectors {
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  DType dtype = DType::f32;
  MatrixShape shape;

  MatrixView view() const {
    const void* data = dtype == DType::f32 ? static_cast<const void*>(floats.data()) : bytes.data();
    return {data, dtype, shape};
  }
  float* row(int64_t i) { return floats.data() + i * shape.row_stride; }
};

using Fill = std::function<float(int64_t row, int64_t col)>;

inline Vectors make_vectors(int64_t rows, int64_t cols, const Fill& fill, int64_t gap = 0) {
  Vectors vectors;
  vectors.shape = {rows, cols, cols + gap};
  vectors.floats.assign(static_cast<size_t>(rows * (cols + gap) + 1), -7.0f);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) vectors.row(i)[j] = fill(i, j);
  }
  return vectors;
}

inline Vectors random_vectors(DType dtype, int64_t rows, int64_t cols, uint32_t seed, int64_t gap = 0) {
  std::mt19937 random(seed);
  if (dtype == DType::f32) {
    return make_vectors(
        rows, cols,
        [&](int64_t, int64_t) { return static_cast<float>(std::ldexp(static_cast<double>(random()), -31) - 1.0); },
        gap);
  }
  Vectors vectors;
  vectors.dtype = DType::u8;
  vectors.shape = {rows, cols, cols + gap};
  vectors.bytes.resize(static_cast<size_t>(rows * (cols + gap) + 1));
  for (uint8_t& byte : vectors.bytes) byte = static_cast<uint8_t>(random());
  return vectors;
}

// A value as a dtype has it, to memory; bytes take what they can hold of it.
inline void store_as(DType dtype, float value, void* to) {
  const auto store = [&](auto stored) { std::memcpy(to, &stored, sizeof stored); };
  switch (dtype) {
    case DType::f32: return store(value);
    case DType::f16: return store(half_of(value));
    case DType::bf16: return store(bfloat16_of(value));
    case DType::u8: return store(static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)));
    case DType::i8: return store(static_cast<int8_t>(std::clamp(value, -128.0f, 127.0f)));
    case DType::f64: return store(static_cast<double>(value));
  }
}

// Vectors of any dtype: values from 0 to 3, or whole numbers for bytes; signed where asked for.
class Stored {
 public:
  Stored(DType dtype, int64_t rows, int64_t cols, uint32_t seed, bool is_signed)
      : dtype_(dtype), shape_{rows, cols, cols}, bytes_(static_cast<size_t>(rows * cols * size_of(dtype))) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < rows * cols; ++i) put(i, static_cast<int32_t>(random() >> 24) - (is_signed ? 128 : 0));
  }
  MatrixView view() const { return {bytes_.data(), dtype_, shape_}; }

 private:
  void put(int64_t i, int32_t number) {
    const auto value = static_cast<float>(dtype_ == DType::i8 ? number / 2 : number);
    const bool whole = dtype_ == DType::u8 || dtype_ == DType::i8;
    store_as(dtype_, whole ? value : value * 0.0123f, bytes_.data() + i * size_of(dtype_));
  }

  DType dtype_;
  MatrixShape shape_;
  std::vector<uint8_t> bytes_;
};

inline constexpr DType kAllDtypes[] = {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8};
inline constexpr Metric kEveryMetric[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                          Metric::l1, Metric::linf,        Metric::chi_square};

// Data on which bounds are wide, or ties many: calls use(name, queries, base) for each.
template <typename Use>
void for_each_hard_data(int64_t rows, int64_t cols, uint32_t seed, const Use& use) {
  const Vectors noise = random_vectors(DType::f32, rows, cols, seed);
  const auto value = [&](int64_t i, int64_t j) { return noise.floats[static_cast<size_t>(i * cols + j)]; };
  const std::pair<const char*, Fill> cases[] = {
      {"mean far larger than spread", [&](int64_t i, int64_t j) { return 1e4f + value(i, j); }},
      {"near duplicates",
       [&](int64_t i, int64_t j) { return value(i % 10, j) + (j == 0 ? 1e-7f * static_cast<float>(i % 5) : 0); }},
      {"pairs of duplicates", [&](int64_t i, int64_t j) { return value(i / 2, j); }},
      {"all rows equal", [&](int64_t, int64_t j) { return value(0, j); }},
      {"sorted", [&](int64_t i, int64_t) { return static_cast<float>(i) * 1e-3f; }},
      {"reversed", [&](int64_t i, int64_t) { return static_cast<float>(rows - i) * 1e-3f; }},
      {"many zero vectors", [&](int64_t i, int64_t j) { return i % 3 == 0 ? 0.0f : value(i, j); }},
      {"huge", [&](int64_t i, int64_t j) { return 1e19f * value(i, j); }},
      {"tiny", [&](int64_t i, int64_t j) { return 1e-20f * value(i, j); }},
      {"very tiny", [&](int64_t i, int64_t j) { return 1e-39f * value(i, j); }},
      {"norms over six orders",
       [&](int64_t i, int64_t j) { return value(i, j) * std::pow(10.0f, static_cast<float>(i % 7) - 3); }},
      {"an outlier", [&](int64_t i, int64_t j) { return i == rows / 2 ? 1e6f : value(i, j); }},
  };
  for (const auto& [name, fill] : cases) {
    SCOPED_TRACE(name);
    use(make_vectors(20, cols, [&, &at = fill](int64_t i, int64_t j) { return at(i * 997 % rows, j); }),
        make_vectors(rows, cols, fill));
  }
}

// A filter in its three forms, which keeps about `share` of the rows, at random.
struct Filters {
  std::vector<uint8_t> mask;
  std::vector<uint8_t> bits;
  std::vector<int64_t> rows;  // backwards, and some twice

  Filters(int64_t count, double share, uint32_t seed)
      : mask(static_cast<size_t>(count)), bits(static_cast<size_t>((count + 7) / 8)) {
    std::mt19937 random(seed);
    for (size_t i = mask.size(); i-- > 0;) {
      mask[i] = std::ldexp(static_cast<double>(random()), -32) < share ? 1 : 0;
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | mask[i] << (i % 8));
      if (mask[i] != 0) rows.insert(rows.end(), i % 5 == 0 ? 2 : 1, static_cast<int64_t>(i));
    }
  }
  RowFilter by_mask() const { return RowFilter::mask(mask.data(), static_cast<int64_t>(mask.size())); }
  RowFilter by_bits() const { return RowFilter::bits(bits.data(), static_cast<int64_t>(mask.size())); }
  RowFilter by_rows() const { return RowFilter::rows(rows.data(), static_cast<int64_t>(rows.size())); }
};

inline void expect_same_bytes(const RangeNeighbors& expected, const RangeNeighbors& found) {
  ASSERT_EQ(expected.queries(), found.queries());
  for (int64_t q = 0; q < expected.queries(); ++q) {
    ASSERT_EQ(expected.offsets()[q + 1], found.offsets()[q + 1]) << "query " << q << " has other rows";
  }
  for (int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected.ids()[i], found.ids()[i])
        << "place " << i << ": " << expected.distances()[i] << " and " << found.distances()[i];
  }
  ASSERT_EQ(std::memcmp(expected.distances(), found.distances(), sizeof(float) * static_cast<size_t>(expected.size())),
            0);
}

inline void expect_same_bytes(const Neighbors& expected, const Neighbors& found) {
  ASSERT_EQ(expected.queries(), found.queries());
  ASSERT_EQ(expected.k(), found.k());
  for (int64_t q = 0; q < expected.queries(); ++q) {
    for (int64_t i = 0; i < expected.k(); ++i) {
      ASSERT_EQ(expected.ids(q)[i], found.ids(q)[i])
          << "query " << q << " place " << i << ": " << expected.distances(q)[i] << " and " << found.distances(q)[i];
    }
    ASSERT_EQ(std::memcmp(expected.distances(q), found.distances(q), sizeof(float) * static_cast<size_t>(expected.k())),
              0)
        << "query " << q << " has other distances";
  }
}

inline void expect_same(const Neighbors& expected, const Neighbors& found, const std::string& what) {
  SCOPED_TRACE(what);
  expect_same_bytes(expected, found);
}

inline void expect_parity(const Vectors& queries, const Vectors& base, const KnnParams& params,
                          const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << queries.shape.rows << " queries (" << name_of(queries.dtype) << "), "
                                  << base.shape.rows << " rows (" << name_of(base.dtype) << "), " << base.shape.cols
                                  << " columns, k " << params.k << ", " << name_of(params.metric));
  expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()), knn(queries.view(), base.view(), params, cuda));
}

inline constexpr Metric kAllMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

// The text of the exception of type E that `call` throws; "" where it throws none.
template <typename E, typename Call>
std::string text_thrown(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace kith
