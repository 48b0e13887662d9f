#include "quantize/additive/additive_training.hpp"

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "cuda/resolve_device.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/local_search_steps.hpp"
#include "quantize/additive/search_books.hpp"

#include "rows/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace kith {
namespace {

constexpr uint64_t kNoiseStream = 0x6C73716E;
constexpr int64_t kRowParts = 64;  // of sums over the rows, whatever the threads

// A nearly normal number of variance 1, from sums that all processors round alike.
double normal_draw(const CounterRng& rng, uint64_t index) {
  int64_t sum = 0;
  for (uint64_t block = 0; block < 3; ++block) {
    const Random4 words = rng.block(3 * index + block);
    for (const uint32_t word : words.word) sum += word >> 1;
  }
  return static_cast<double>(sum) * 0x1p-31 - 6.0;
}

// Moves each value at random, by about `scale` times its column's deviation.
void move_codewords(const std::vector<double>& deviations, double scale, uint64_t seed, int64_t round, int64_t words,
                    float* values, const Resources& resources) {
  const CounterRng rng(seed, kNoiseStream + static_cast<uint64_t>(round));
  const auto cols = static_cast<int64_t>(deviations.size());
  ProgressMeter meter("anneal", words, resources);
  parallel_for(words, meter, resources, [&](int64_t word, int) {
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t at = word * cols + c;
      const double moved = deviations[static_cast<size_t>(c)] * scale * normal_draw(rng, static_cast<uint64_t>(at));
      values[at] = static_cast<float>(static_cast<double>(values[at]) + moved);
    }
  });
}

// Sorts books by the distance of their codewords from their mean, the farthest first: sweeps in that order reach a
// lower error.
std::vector<float> coarse_first(const Codebooks& books) {
  std::vector<std::pair<double, int64_t>> spreads;
  const int64_t size = books.words() * books.cols;
  for (int64_t k = 0; k < books.books; ++k) {
    std::vector<double> sums(static_cast<size_t>(books.cols));
    std::vector<double> squares(sums.size());
    for (int64_t j = 0; j < books.words(); ++j) {
      const float* const word = books.word(k, j);
      for (size_t c = 0; c < sums.size(); ++c) {
        const auto value = static_cast<double>(word[c]);
        sums[c] += value;
        squares[c] += value * value;
      }
    }
    double spread = 0;
    for (size_t c = 0; c < sums.size(); ++c)
      spread += squares[c] - sums[c] * sums[c] / static_cast<double>(books.words());
    spreads.emplace_back(-spread, k);
  }
  std::sort(spreads.begin(), spreads.end());
  std::vector<float> ordered;
  for (const auto& [spread, k] : spreads) {
    ordered.insert(ordered.end(), books.book(k), books.book(k) + size);
  }
  return ordered;
}

// Column sums, added part by part.
std::vector<double> column_sums(const float* rows, int64_t count, int64_t cols, bool squares, ProgressMeter& meter,
                                const Resources& resources) {
  std::vector<double> parts(static_cast<size_t>(kRowParts * cols));
  parallel_for(kRowParts, meter, resources, [&](int64_t part, int) {
    double* const sum = parts.data() + part * cols;
    for (int64_t i = count * part / kRowParts; i < count * (part + 1) / kRowParts; ++i) {
      for (int64_t c = 0; c < cols; ++c) {
        const auto value = static_cast<double>(rows[i * cols + c]);
        sum[c] += squares ? value * value : value;
      }
    }
  });
  std::vector<double> sums(static_cast<size_t>(cols));
  for (int64_t part = 0; part < kRowParts; ++part) {
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += parts[static_cast<size_t>(part * cols + c)];
  }
  return sums;
}

struct RowMoments {
  std::vector<double> mean;  // of each column
  std::vector<double> deviations;
};

// Subtracts the mean from the rows. Otherwise it would be in every codeword, and lambda would shrink it.
RowMoments centre(float* rows, int64_t count, int64_t cols, const Resources& resources) {
  ProgressMeter meter("mean", 3 * kRowParts, resources);
  RowMoments moments;
  moments.mean = column_sums(rows, count, cols, false, meter, resources);
  for (double& value : moments.mean)
    value = static_cast<double>(static_cast<float>(value / static_cast<double>(count)));
  parallel_for(kRowParts, meter, resources, [&](int64_t part, int) {
    for (int64_t i = count * part / kRowParts; i < count * (part + 1) / kRowParts; ++i) {
      for (int64_t c = 0; c < cols; ++c) {
        float& value = rows[i * cols + c];
        value = static_cast<float>(static_cast<double>(value) - moments.mean[static_cast<size_t>(c)]);
      }
    }
  });
  moments.deviations = column_sums(rows, count, cols, true, meter, resources);
  for (double& value : moments.deviations) value = std::sqrt(value / static_cast<double>(count));
  return moments;
}

// Converts codebooks of centred rows to those of the rows: the first book, the one with the largest spread, gets the
// mean.
std::vector<float> uncentred(std::vector<float> codebooks, const Codebooks& shape, const std::vector<double>& mean) {
  for (int64_t i = 0; i < shape.words() * shape.cols; ++i) {
    float& value = codebooks[static_cast<size_t>(i)];
    value = static_cast<float>(static_cast<double>(value) + mean[static_cast<size_t>(i % shape.cols)]);
  }
  round_to_grid(codebooks.data(), shape.books, shape.bits, shape.cols);
  return codebooks;
}

double squares_of(const std::vector<float>& codebooks) {
  double squares = 0;
  for (const float value : codebooks) squares += static_cast<double>(value) * static_cast<double>(value);
  return squares;
}

// The device of training. Codebooks must not depend on threads, but differ in their last bits between devices: if the
// caller does not choose, the machine and the problem alone decide.
Device resolve_training_device(const LocalSearchParams& params, const RowsInfo& rows, const Resources& resources) {
  const auto steps = static_cast<double>(params.rounds * params.train_search_rounds * params.sweeps);
  const auto values = static_cast<double>(std::min(rows.rows, kMostTrainingRows) * rows.cols);
  return choose_device({"local search training",
                        [&] { return fmt::format("codebooks of {} x {} vectors", rows.rows, rows.cols); }, true},
                       {rows.space},
                       {{rows.cols <= kProductMostCols ? CostUnit::dense_product : CostUnit::f32_training,
                         2.0 * values * static_cast<double>(params.codebooks << params.bits) * steps},
                        {CostUnit::copied_byte, 4 * values}},
                       {}, resources);
}

std::unique_ptr<LocalSearchSteps> make_steps(const TrainingShape& shape, Device device, const Resources& resources) {
  return dispatch(
      device, [&] { return make_local_search_steps_cpu(shape, resources); },
      [&](int index) { return make_local_search_steps_cuda(shape, index, resources); });
}

}  // namespace

Footprint local_search_training_footprint(const LocalSearchParams& params, const RowsInfo& rows,
                                          const Resources& resources) {
  const int64_t count = std::min(rows.rows, kMostTrainingRows);
  const MatrixView sample(counted_only_memory(), DType::f32, {count, rows.cols, rows.cols});
  const TrainingShape shape{sample, params.codebooks, params.bits};
  const Device device = resolve_training_device(params, rows, resources);
  const Footprint kept = counted(resources, [&](const Resources& used) { (void)make_steps(shape, device, used); });
  const Footprint working = dispatch(
      device, [&] { return local_search_steps_footprint(shape, resources); },
      [&](int index) {
        return counted(resources, [&](const Resources& used) {
          AdditiveEncoding encoding;
          encoding.search = plan_of(params, params.train_search_rounds, 0);
          make_local_search_steps_cuda(shape, index, used)
              ->encode({nullptr, params.codebooks, params.bits, rows.cols}, encoding);
        });
      });
  const Footprint first =
      first_codebooks_footprint(params.train_start, count, rows.cols, params.codebooks, params.bits, resources);
  const Footprint drawing = sample_footprint(rows.rows).then(gathering_footprint(rows, count, resources));
  return array_footprint<float>(count, rows.cols).beside(drawing.then(kept.beside(first)).then(working));
}

void train_local_search(const LocalSearchParams& params, RowSource& source, std::vector<float>& trained,
                        std::vector<double>& history, const Resources& resources) {
  check_training_rows("local search quantizer", source.rows(), params.bits, resources);
  const int64_t cols = source.info().cols;
  const Device device = resolve_training_device(params, source.info(), resources);
  const HostArray<float> values = training_sample(source, kMostTrainingRows, params.seed, resources);
  const int64_t count = values.size() / cols;
  const MatrixView rows(values.data(), count, cols);
  const Resources quiet = resources.with_progress({});
  const RowMoments moments = centre(values.data(), count, cols, quiet);
  const TrainingShape shape{rows, params.codebooks, params.bits};
  const std::unique_ptr<LocalSearchSteps> steps = make_steps(shape, device, quiet);

  std::vector<float> codebooks =
      first_codebooks(params.train_start, rows, params.codebooks, params.bits, params.seed, resources);
  AdditiveEncoding encoding;
  encoding.search = plan_of(params, params.train_search_rounds, 0);
  AdditiveEncoding first = encoding;
  first.search.rounds = 0;
  if (codebooks.empty()) {  // codes are drawn, whatever the codewords
    first.start = CodeStart::random;
    codebooks.resize(static_cast<size_t>((params.codebooks << params.bits) * cols));
  }
  steps->encode({codebooks.data(), params.codebooks, params.bits, cols}, first);
  encoding.start = CodeStart::given;
  double cost = steps->cost();
  double spread = 0;  // what codes of nothing but the mean would cost
  for (const double one : moments.deviations) spread += one * one * static_cast<double>(count);
  ProgressMeter meter("LSQ", params.rounds, resources);
  for (int64_t round = 0; round < params.rounds; ++round) {
    steps->update(params.regularization, codebooks.data());
    const Codebooks books{codebooks.data(), params.codebooks, params.bits, cols};
    const double left = 1.0 - static_cast<double>(round + 1) / static_cast<double>(params.rounds);
    if (params.anneal > 0 && left > 0 && cost > 0) {
      // Costs are f32, and infinite for rows of 1e19.
      const double noise = std::min(1.0, cost / spread) * left / static_cast<double>(params.codebooks);
      move_codewords(moments.deviations, params.anneal * std::sqrt(noise), params.seed, round, books.all_words(),
                     codebooks.data(), quiet);
    }
    round_to_grid(codebooks.data(), params.codebooks, params.bits, cols);
    encoding.search.from_round = round * params.train_search_rounds;
    steps->encode(books, encoding);
    cost = steps->cost();
    trained = uncentred(coarse_first(books), books, moments.mean);
    const double objective = cost + params.regularization * squares_of(codebooks);
    resources.log(LogLevel::info, fmt::format("LSQ round {} of {}: objective {:.9g}, {:.9g} a row", round + 1,
                                              params.rounds, objective, objective / static_cast<double>(count)));
    history.push_back(objective);
    meter.add(1);
    meter.poll();
  }
  meter.finish();
}

}  // namespace kith
