#include "quantize/additive/local_search_steps.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/dense.hpp"
#include "kernels/dense/factorisations.hpp"

#include <algorithm>

namespace kith {
namespace {

class CpuSteps final : public LocalSearchSteps {
 public:
  CpuSteps(const TrainingShape& shape, const Resources& resources)
      : shape_(shape),
        resources_(resources),
        codes_(shape.rows.rows() * shape.books, "training codes", resources),
        costs_(shape.rows.rows(), "training codes", resources) {
    if (!resources.host_memory()->counts_only()) std::fill(codes_.begin(), codes_.end(), uint8_t{0});
  }

  void encode(const Codebooks& books, const AdditiveEncoding& encoding) override {
    encode_additive(books, encoding, shape_.rows, codes_.data(), costs_.data(), resources_);
  }

  double cost() override {
    double sum = 0;
    for (const float cost : costs_) sum += static_cast<double>(cost);
    return sum;
  }

  void update(double lambda, float* codebooks) override {
    const CodedRows coded{static_cast<const float*>(shape_.rows.data()),
                          codes_.data(),
                          shape_.rows.rows(),
                          shape_.rows.cols(),
                          shape_.books,
                          shape_.bits};
    update_codebooks(coded, lambda, codebooks, resources_);
  }

 private:
  const TrainingShape shape_;
  const Resources resources_;
  HostArray<uint8_t> codes_;
  HostArray<float> costs_;
};

}  // namespace

std::unique_ptr<LocalSearchSteps> make_local_search_steps_cpu(const TrainingShape& shape, const Resources& resources) {
  return std::make_unique<CpuSteps>(shape, resources);
}

namespace {

constexpr int64_t kColumns = 64;  // of sums that one task adds up

// Counts how often the codewords of a book occur together with those of every book.
void count_pairs(const CodedRows& coded, int64_t k, const Dense& counts) {
  const int64_t words = int64_t{1} << coded.bits;
  for (int64_t i = 0; i < coded.count; ++i) {
    const uint8_t* const codes = coded.codes + i * coded.books;
    double* const to = counts.row(k * words + codes[k]);
    for (int64_t l = 0; l < coded.books; ++l) to[l * words + codes[l]] += 1.0;
  }
}

void add_rows(const CodedRows& coded, int64_t k, int64_t first, int64_t cols, const Dense& sums) {
  const int64_t words = int64_t{1} << coded.bits;
  for (int64_t i = 0; i < coded.count; ++i) {
    const float* const row = coded.rows + i * coded.cols + first;
    double* const to = sums.row(k * words + coded.codes[i * coded.books + k]) + first;
    for (int64_t c = 0; c < cols; ++c) to[c] += static_cast<double>(row[c]);
  }
}

}  // namespace

void update_codebooks(const CodedRows& coded, double lambda, float* codebooks, const Resources& resources) {
  const int64_t words = coded.books << coded.bits;
  const Dense counts(words, words, "codewords that occur together", resources);
  const Dense sums(words, coded.cols, "sums of rows", resources);
  const Resources quiet = resources.with_progress({});
  const int64_t parts = divide_up(coded.cols, kColumns);
  ProgressMeter meter("update", coded.books * (parts + 1), quiet);
  parallel_for(coded.books * (parts + 1), meter, quiet, [&](int64_t task, int) {
    const int64_t k = task % coded.books;
    const int64_t first = task / coded.books * kColumns;
    if (first < coded.cols) {
      add_rows(coded, k, first, std::min(kColumns, coded.cols - first), sums);
    } else {
      count_pairs(coded, k, counts);
    }
  });
  for (int64_t w = 0; w < words; ++w) counts(w, w) += lambda;
  solve_positive_definite(counts.view(), sums.view(), lambda, quiet);
  std::transform(sums.row(0), sums.row(0) + words * coded.cols, codebooks,
                 [](double value) { return static_cast<float>(value); });
}

Footprint local_search_steps_footprint(const TrainingShape& shape, const Resources& resources) {
  const int64_t cols = shape.rows.cols();
  const int64_t words = shape.books << shape.bits;
  const Footprint update =
      array_footprint<double>(words, words + cols).beside(product_footprint<double>(words, words, 1, resources));
  const Codebooks books{nullptr, shape.books, shape.bits, cols};
  return footprint_of<CpuSteps>(resources, shape)
      .beside(update.then(additive_encoding_footprint(books, SearchForm::products, 1, resources)));
}

}  // namespace kith
