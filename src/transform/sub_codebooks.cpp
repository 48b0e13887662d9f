#include "transform/sub_codebooks.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "kernels/assign/sums_by_label_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 1024;

}  // namespace

SubCodebooks::SubCodebooks(int64_t rows, int64_t cols, int64_t parts, const Resources& resources)
    : rows_(rows),
      parts_(parts),
      part_cols_(cols / parts),
      count_(std::min(rows, kMostCodewords)),
      codewords_(cols * kMostCodewords, "codewords", resources),
      codes_(rows * parts, "codes", resources) {
  std::fill(codewords_.begin(), codewords_.end(), 0.0f);
}

void SubCodebooks::start(DenseView<const float> rows, uint64_t seed) {
  for (int64_t part = 0; part < parts_; ++part) {
    const CounterRng rng(seed, static_cast<uint64_t>(part));
    for (int64_t k = 0; k < count_; ++k) {
      // A row of each of so many stretches.
      const int64_t from = k * rows_ / count_;
      const int64_t stretch = (k + 1) * rows_ / count_ - from;
      const int64_t row = from + rng.below(static_cast<uint64_t>(k), static_cast<uint32_t>(stretch));
      std::copy_n(rows.row(row) + part * part_cols_, part_cols_, codebook(part) + k * part_cols_);
    }
  }
}

void SubCodebooks::assign(DenseView<const float> rows, const Resources& resources) {
  const int64_t each = group_floats(count_, part_cols_);
  const HostArray<float> groups(parts_ * each, "codewords", resources);
  for (int64_t part = 0; part < parts_; ++part) {
    set_groups(codebook(part), count_, part_cols_, groups.data() + part * each);
  }
  const int64_t scratch_floats = NearestCodeword::scratch_floats(part_cols_);
  const HostArray<float> scratch(resources.threads() * scratch_floats, "a block of rows", resources);
  const int64_t blocks = divide_up(rows_, kBlockRows);
  ProgressMeter meter("codes", blocks, resources);
  parallel_for(blocks, meter, resources, [&](int64_t block, int slot) {
    const int64_t first = block * kBlockRows;
    for (int64_t part = 0; part < parts_; ++part) {
      least_codewords_cpu(groups.data() + part * each, count_, part_cols_, rows.row(first) + part * part_cols_,
                          rows.row_step, std::min(kBlockRows, rows_ - first), codes(part) + first,
                          scratch.data() + slot * scratch_floats);
    }
  });
}

double SubCodebooks::error(DenseView<const float> rows) const {
  double sum = 0;
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t part = 0; part < parts_; ++part) {
      const float* const values = rows.row(i) + part * part_cols_;
      const float* const codeword = codebook(part) + codes(part)[i] * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) {
        const double difference = static_cast<double>(values[c]) - static_cast<double>(codeword[c]);
        sum += difference * difference;
      }
    }
  }
  return sum;
}

void SubCodebooks::move(DenseView<const float> rows, const Resources& resources) {
  ProgressMeter meter("codewords", parts_, resources);
  parallel_for(parts_, meter, resources, [&](int64_t part, int) {
    std::vector<double> sums(static_cast<size_t>(count_ * part_cols_));
    std::vector<double> sizes(static_cast<size_t>(count_));
    const MatrixView values(rows.row(0) + part * part_cols_, DType::f32, {rows_, part_cols_, rows.row_step});
    add_rows_cpu(values, codes(part), sums.data(), sizes.data());
    float* const book = codebook(part);
    for (int64_t k = 0; k < count_; ++k) {
      const double size = sizes[static_cast<size_t>(k)];
      for (int64_t c = 0; size > 0 && c < part_cols_; ++c) {
        book[k * part_cols_ + c] = static_cast<float>(sums[static_cast<size_t>(k * part_cols_ + c)] / size);
      }
    }
    for (int64_t k = 0; k < count_; ++k) {
      double& size = sizes[static_cast<size_t>(k)];
      if (size > 0) continue;
      const auto most = std::max_element(sizes.begin(), sizes.end());
      float* const largest = book + (most - sizes.begin()) * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) {  // a little to either side
        const float step = (c % 2 == 0 ? 1.0f : -1.0f) / 1024;
        book[k * part_cols_ + c] = largest[c] * (1 + step);
        largest[c] *= 1 - step;
      }
      size = std::floor(*most / 2);
      *most -= size;
    }
  });
}

void SubCodebooks::decode(DenseView<float> rows, const Resources& resources) const {
  const int64_t blocks = divide_up(rows_, kBlockRows);
  ProgressMeter meter("decode", blocks, resources);
  parallel_for(blocks, meter, resources, [&](int64_t block, int) {
    for (int64_t i = block * kBlockRows; i < std::min((block + 1) * kBlockRows, rows_); ++i) {
      for (int64_t part = 0; part < parts_; ++part) {
        std::copy_n(codebook(part) + codes(part)[i] * part_cols_, part_cols_, rows.row(i) + part * part_cols_);
      }
    }
  });
}

}  // namespace kith
