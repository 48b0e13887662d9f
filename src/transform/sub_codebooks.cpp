#include "transform/sub_codebooks.hpp"

#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kCodedRows = 1024;  // at a time

}  // namespace

std::vector<uint32_t> drawn_sub_codewords(int64_t rows, int64_t parts, int64_t count, uint64_t seed) {
  std::vector<uint32_t> drawn;
  drawn.reserve(static_cast<size_t>(parts * count));
  for (int64_t part = 0; part < parts; ++part) {
    const CounterRng rng(seed, static_cast<uint64_t>(part));
    for (int64_t k = 0; k < count; ++k) {
      // One row of each of `count` stretches.
      const int64_t from = k * rows / count;
      const int64_t stretch = (k + 1) * rows / count - from;
      const int64_t row = from + rng.below(static_cast<uint64_t>(k), static_cast<uint32_t>(stretch));
      drawn.push_back(static_cast<uint32_t>(row));
    }
  }
  return drawn;
}

SubCodebooks::SubCodebooks(int64_t rows, int64_t cols, int64_t parts, const Resources& resources)
    : rows_(rows),
      parts_(parts),
      part_cols_(cols / parts),
      count_(std::min(rows, kMostSubCodewords)),
      codewords_(cols * kMostSubCodewords, "codewords", resources),
      codes_(rows * parts, "codes", resources),
      errors_(rows, "errors of codes", resources),
      groups_(parts * group_floats(count_, part_cols_), "codewords", resources),
      scratch_(resources.threads() * NearestCodeword::scratch_floats(part_cols_), "a block of rows", resources) {}

void SubCodebooks::start(DenseView<const float> rows, uint64_t seed) {
  const std::vector<uint32_t> drawn = drawn_sub_codewords(rows_, parts_, count_, seed);
  for (int64_t part = 0; part < parts_; ++part) {
    for (int64_t k = 0; k < count_; ++k) {
      const float* const row = rows.row(drawn[static_cast<size_t>(part * count_ + k)]);
      std::copy_n(row + part * part_cols_, part_cols_, codebook(part) + k * part_cols_);
    }
  }
}

void SubCodebooks::assign(DenseView<const float> rows, const Resources& resources) {
  const int64_t each = group_floats(count_, part_cols_);
  for (int64_t part = 0; part < parts_; ++part) {
    set_groups(codebook(part), count_, part_cols_, groups_.data() + part * each);
  }
  const int64_t scratch_floats = NearestCodeword::scratch_floats(part_cols_);
  const auto assign_some = [&](int64_t first, int64_t end, int slot) {
    for (int64_t part = 0; part < parts_; ++part) {
      least_codewords_cpu(groups_.data() + part * each, count_, part_cols_, rows.row(first) + part * part_cols_,
                          rows.row_step, end - first, codes(part) + first, scratch_.data() + slot * scratch_floats);
    }
  };
  for_row_blocks("codes", rows_, resources, assign_some, kCodedRows);
}

double SubCodebooks::error(DenseView<const float> rows, const Resources& resources) const {
  const auto measure_some = [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      double sum = 0;
      for (int64_t part = 0; part < parts_; ++part) {
        const float* const values = rows.row(i) + part * part_cols_;
        const float* const codeword = codebook(part) + codes(part)[i] * part_cols_;
        for (int64_t c = 0; c < part_cols_; ++c) {
          const double difference = static_cast<double>(values[c]) - static_cast<double>(codeword[c]);
          sum += difference * difference;
        }
      }
      errors_[i] = sum;
    }
  };
  for_row_blocks("errors of codes", rows_, resources, measure_some, kCodedRows);
  double total = 0;
  for (const double error : errors_) total += error;
  return total;
}

void SubCodebooks::move(DenseView<const float> rows, const Resources& resources) {
  ProgressMeter meter("codewords", parts_, resources);
  parallel_for(parts_, meter, resources, [&](int64_t part, int) {
    std::vector<double> sums(static_cast<size_t>(count_ * part_cols_));
    std::vector<double> sizes(static_cast<size_t>(count_));
    for (int64_t i = 0; i < rows_; ++i) {
      const float* const values = rows.row(i) + part * part_cols_;
      const int64_t code = codes(part)[i];
      double* const to = sums.data() + code * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) to[c] += rounded_to_add(values[c]);
      ++sizes[static_cast<size_t>(code)];
    }
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
  const auto decode_some = [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      for (int64_t part = 0; part < parts_; ++part) {
        std::copy_n(codebook(part) + codes(part)[i] * part_cols_, part_cols_, rows.row(i) + part * part_cols_);
      }
    }
  };
  for_row_blocks("decode", rows_, resources, decode_some, kCodedRows);
}

}  // namespace kith
