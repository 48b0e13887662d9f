#include "transform/sub_codebooks.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/sub_codebooks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cluster/row_sample.hpp"
#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "transform/fused_cpu-inl.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#ifndef KITH_QUANTIZE_SUB_CODEBOOKS_ONCE
#define KITH_QUANTIZE_SUB_CODEBOOKS_ONCE
namespace kith {
namespace {

// Rows of one part, its codewords and where their codes go.
struct AssignTask {
  const float* rows;
  int64_t row_step;
  int64_t row_count;
  int64_t cols;
  const float* codewords;  // negative, column after column
  const float* halves;
  int64_t width;  // codewords, whole registers of any instruction set
  uint8_t* codes;
  int64_t code_step;
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows that go together: each codeword is loaded once for all of them.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRowsTogether = 4;
constexpr int kVectors = 4;
#else
constexpr int kRowsTogether = 2;
constexpr int kVectors = 4;
#endif

void AssignRows(const AssignTask& task) {
  using U32 = hn::RebindToUnsigned<F32>;
  constexpr int64_t kFloats = hn::MaxLanes(F32());
  for (int64_t first = 0; first < task.row_count; first += kRowsTogether) {
    const int64_t count = std::min<int64_t>(kRowsTogether, task.row_count - first);
    const float* rows[kRowsTogether];
    Floats best[kRowsTogether];
    hn::Vec<U32> places[kRowsTogether];
    for (int r = 0; r < kRowsTogether; ++r) {
      rows[r] = task.rows + (first + std::min<int64_t>(r, count - 1)) * task.row_step;
      best[r] = hn::Set(F32(), std::numeric_limits<float>::infinity());
      places[r] = hn::Zero(U32());
    }
    for (int64_t w = 0; w < task.width; w += kVectors * kFloats) {
      Floats sums[kRowsTogether][kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const Floats half = hn::LoadU(F32(), task.halves + w + v * kFloats);
#pragma GCC unroll 4
        for (int r = 0; r < kRowsTogether; ++r) sums[r][v] = half;
      }
      const float* codewords = task.codewords + w;
      for (int64_t c = 0; c < task.cols; ++c, codewords += SubCodebooks::kMostCodewords) {
        Floats x[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(F32(), codewords + v * kFloats);
#pragma GCC unroll 4
        for (int r = 0; r < kRowsTogether; ++r) {
          const Floats value = hn::Set(F32(), rows[r][c]);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sums[r][v] = fused(value, x[v], sums[r][v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const auto place = hn::Set(U32(), static_cast<uint32_t>(w / kFloats + v));
#pragma GCC unroll 4
        for (int r = 0; r < kRowsTogether; ++r) {
          const auto less = hn::Lt(sums[r][v], best[r]);
          best[r] = hn::IfThenElse(less, sums[r][v], best[r]);
          places[r] = hn::IfThenElse(hn::RebindMask(U32(), less), place, places[r]);
        }
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      // The least, and among equals the smallest codeword.
      const Floats least = hn::MinOfLanes(F32(), best[r]);
      const auto own = hn::Iota(U32(), 0);
      const auto codeword = hn::Add(hn::Mul(places[r], hn::Set(U32(), static_cast<uint32_t>(kFloats))), own);
      const auto equal = hn::RebindMask(U32(), hn::Eq(best[r], least));
      const auto found = hn::IfThenElse(equal, codeword, hn::Set(U32(), 0u - 1u));
      const uint32_t code = hn::GetLane(hn::MinOfLanes(U32(), found));
      task.codes[(first + r) * task.code_step] = static_cast<uint8_t>(code);  // NaN everywhere: the last
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(AssignRows);

namespace {

constexpr int64_t kBlockRows = 1024;
constexpr int64_t kWidest = 64;  // codewords that the widest instruction set takes at a time

}  // namespace

SubCodebooks::SubCodebooks(int64_t rows, int64_t cols, int64_t parts, const Resources& resources)
    : rows_(rows),
      parts_(parts),
      part_cols_(cols / parts),
      count_(std::min(rows, kMostCodewords)),
      codewords_(cols * kMostCodewords, "codewords", resources),
      halves_(parts * kMostCodewords, "codewords", resources),
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
      const float* const values = rows.row(row) + part * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) codebook(part)[c * kMostCodewords + k] = values[c];
    }
  }
}

void SubCodebooks::assign(DenseView<const float> rows, const Resources& resources) {
  const HostArray<float> negative(codewords_.size(), "codewords", resources);
  std::transform(codewords_.begin(), codewords_.end(), negative.begin(), [](float value) { return -value; });
  for (int64_t part = 0; part < parts_; ++part) {
    float* const halves = halves_.data() + part * kMostCodewords;
    std::fill_n(halves, kMostCodewords, std::numeric_limits<float>::infinity());
    for (int64_t k = 0; k < count_; ++k) {
      double squared = 0;
      for (int64_t c = 0; c < part_cols_; ++c) {
        const auto value = static_cast<double>(codebook(part)[c * kMostCodewords + k]);
        squared += value * value;
      }
      halves[k] = static_cast<float>(0.5 * squared);
    }
  }
  const int64_t blocks = divide_up(rows_, kBlockRows);
  ProgressMeter meter("codes", blocks, resources);
  parallel_for(blocks, meter, resources, [&](int64_t block, int) {
    const int64_t first = block * kBlockRows;
    for (int64_t part = 0; part < parts_; ++part) {
      const int64_t at = part * part_cols_;
      const AssignTask task{rows.row(first) + at,
                            rows.row_step,
                            std::min(kBlockRows, rows_ - first),
                            part_cols_,
                            negative.data() + at * kMostCodewords,
                            halves_.data() + part * kMostCodewords,
                            round_up(count_, kWidest),
                            codes_.data() + first * parts_ + part,
                            parts_};
      HWY_DYNAMIC_DISPATCH(AssignRows)(task);
    }
  });
}

double SubCodebooks::error(DenseView<const float> rows) const {
  double sum = 0;
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t part = 0; part < parts_; ++part) {
      const float* const values = rows.row(i) + part * part_cols_;
      const float* const codeword = codebook(part) + codes_[i * parts_ + part];
      for (int64_t c = 0; c < part_cols_; ++c) {
        const double difference = static_cast<double>(values[c]) - static_cast<double>(codeword[c * kMostCodewords]);
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
    std::vector<int64_t> sizes(static_cast<size_t>(count_));
    const int64_t at = part * part_cols_;
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t code = codes_[i * parts_ + part];
      const float* const values = rows.row(i) + at;
      double* const sum = sums.data() + code * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) sum[c] += static_cast<double>(values[c]);
      ++sizes[static_cast<size_t>(code)];
    }
    float* const book = codebook(part);
    for (int64_t k = 0; k < count_; ++k) {
      const int64_t size = sizes[static_cast<size_t>(k)];
      for (int64_t c = 0; size > 0 && c < part_cols_; ++c) {
        const double sum = sums[static_cast<size_t>(k * part_cols_ + c)];
        book[c * kMostCodewords + k] = static_cast<float>(sum / static_cast<double>(size));
      }
    }
    for (int64_t k = 0; k < count_; ++k) {
      if (sizes[static_cast<size_t>(k)] > 0) continue;
      const auto largest = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
      for (int64_t c = 0; c < part_cols_; ++c) {  // a little to either side
        float* const values = book + c * kMostCodewords;
        const float step = (c % 2 == 0 ? 1.0f : -1.0f) / 1024;
        values[k] = values[largest] * (1 + step);
        values[largest] *= 1 - step;
      }
      sizes[static_cast<size_t>(k)] = sizes[static_cast<size_t>(largest)] / 2;
      sizes[static_cast<size_t>(largest)] -= sizes[static_cast<size_t>(k)];
    }
  });
}

void SubCodebooks::decode(DenseView<float> rows, const Resources& resources) const {
  // Codewords side by side are copied faster.
  const HostArray<float> side(codewords_.size(), "codewords", resources);
  for (int64_t part = 0; part < parts_; ++part) {
    for (int64_t c = 0; c < part_cols_; ++c) {
      for (int64_t k = 0; k < count_; ++k) {
        side[(part * kMostCodewords + k) * part_cols_ + c] = codebook(part)[c * kMostCodewords + k];
      }
    }
  }
  const int64_t blocks = divide_up(rows_, kBlockRows);
  ProgressMeter meter("decode", blocks, resources);
  parallel_for(blocks, meter, resources, [&](int64_t block, int) {
    for (int64_t i = block * kBlockRows; i < std::min((block + 1) * kBlockRows, rows_); ++i) {
      for (int64_t part = 0; part < parts_; ++part) {
        const int64_t code = codes_[i * parts_ + part];
        std::copy_n(side.data() + (part * kMostCodewords + code) * part_cols_, part_cols_,
                    rows.row(i) + part * part_cols_);
      }
    }
  });
}

}  // namespace kith
#endif
