#include "quantize/product/product_training.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "cuda/resolve_device.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_set>

namespace kith {
namespace {

constexpr int64_t kGatheredBytes = int64_t{4} << 20;  // of rows at a time
constexpr uint64_t kSampleStream = 0;                 // those of the parts follow
constexpr int64_t kGatheredShare = 8;                 // or of what the limit has left

int64_t sampled_rows(const CodeFormat& format, int64_t rows) {
  return std::min(rows, kMostRowsPerCodeword * format.codewords());
}

int64_t gathered_rows(const CodeFormat& format, int64_t sampled, int64_t available) {
  return std::clamp<int64_t>(std::min(kGatheredBytes, available / kGatheredShare) / (format.cols * 4), 1, sampled);
}

// Rounds columns so that sums of all rows are exact in float64: to multiples of 2^e rows / 2^53, where 2^e exceeds all
// values. Adding and subtracting a large number leaves multiples of its last digit.
void round_columns(float* values, int64_t rows, int64_t cols) {
  int row_bits = 0;
  while (int64_t{1} << row_bits < rows) ++row_bits;
  std::vector<float> largest(static_cast<size_t>(cols), 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      float& most = largest[static_cast<size_t>(c)];
      most = std::max(most, std::abs(values[i * cols + c]));
    }
  }
  std::vector<double> shifts(static_cast<size_t>(cols));
  for (int64_t c = 0; c < cols; ++c) {
    int exponent = 0;
    std::frexp(largest[static_cast<size_t>(c)], &exponent);  // below 2^exponent
    // A multiple of 2^(exponent + row_bits - 53); 1.5 leaves room for values of either sign.
    shifts[static_cast<size_t>(c)] = std::ldexp(1.5, exponent + row_bits - 53 + 52);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      const double shift = shifts[static_cast<size_t>(c)];
      float& value = values[i * cols + c];
      value = static_cast<float>(static_cast<double>(value) + shift - shift);
    }
  }
}

// Distinct sub-vectors of rows drawn at random; if there are too few, the first one repeats.
void choose_first_codewords(const ProductSample& sample, int64_t part, const CounterRng& rng, float* codewords) {
  const int64_t cols = sample.format.part_cols();
  const int64_t wanted = sample.format.codewords();
  const float* const rows = sample.part(part);
  const auto bytes = static_cast<size_t>(cols) * sizeof(float);
  std::unordered_set<std::string> taken;  // bytes of equal values are equal: rounding left no negative zero
  int64_t found = 0;
  const auto offer = [&](int64_t row) {
    const float* const from = rows + row * cols;
    if (!taken.emplace(reinterpret_cast<const char*>(from), bytes).second) return;
    std::memcpy(codewords + found++ * cols, from, bytes);
  };
  const int64_t draws = std::min(8 * wanted, sample.rows);
  for (int64_t i = 0; i < draws && found < wanted; ++i) {
    offer(rng.below(static_cast<uint64_t>(i), static_cast<uint32_t>(sample.rows)));
  }
  for (int64_t row = 0; row < sample.rows && found < wanted; ++row) offer(row);
  for (; found < wanted; ++found) std::memcpy(codewords + found * cols, codewords, bytes);
}

// Moves codewords without rows to the rows farthest from their own codewords, whose sums lose these rows. Never takes
// the last row of a codeword, and equal rows only once.
void fill_empty(const ProductSample& sample, int64_t part, const float* codewords, const uint8_t* labels, double* sums,
                double* counts) {
  const int64_t cols = sample.format.part_cols();
  const float* const rows = sample.part(part);
  std::vector<std::pair<float, uint32_t>>
      far;  // minus the distance, so that the farthest and then the first sorts first
  for (int64_t i = 0; i < sample.rows; ++i) {
    const float key = canonical_pair<KeyKind::squared_l2>(rows + i * cols, codewords + labels[i] * cols, cols);
    if (key > 0) far.emplace_back(-key, static_cast<uint32_t>(i));
  }
  std::sort(far.begin(), far.end());
  auto next = far.begin();
  const float* last = nullptr;
  for (int64_t k = 0; k < sample.format.codewords(); ++k) {
    if (counts[k] > 0) continue;
    const auto usable = [&](const std::pair<float, uint32_t>& one) {
      const float* const row = rows + one.second * cols;
      return counts[labels[one.second]] > 1 && (last == nullptr || !std::equal(row, row + cols, last));
    };
    next = std::find_if(next, far.end(), usable);
    if (next == far.end()) return;
    const int64_t row = next++->second;
    last = rows + row * cols;
    const int64_t from = labels[row];
    for (int64_t c = 0; c < cols; ++c) {
      sums[from * cols + c] -= static_cast<double>(last[c]);
      sums[k * cols + c] = static_cast<double>(last[c]);
    }
    --counts[from];
    counts[k] = 1;
  }
}

// Moves codewords to the means of their rows; returns whether any has changed.
bool move_codewords(int64_t count, int64_t cols, const double* sums, const double* counts, float* codewords) {
  bool moved = false;
  for (int64_t k = 0; k < count; ++k) {
    if (counts[k] == 0) continue;
    for (int64_t c = 0; c < cols; ++c) {
      const auto mean = static_cast<float>(sums[k * cols + c] / counts[k]);
      moved = moved || mean != codewords[k * cols + c];
      codewords[k * cols + c] = mean;
    }
  }
  return moved;
}

constexpr int64_t kLeastRows = 4096;  // of a run
constexpr int64_t kBlockRows = 1024;  // assigned and added up while they are in the cache

// On the CPU: parts, and runs of their rows, in parallel. Sums are exact, so the number of runs does not
// matter.
class ProductPassCpu final : public ProductPass {
 public:
  ProductPassCpu(const ProductSample& sample, const Resources& resources)
      : sample_(sample),
        resources_(resources),
        runs_(std::clamp<int64_t>(divide_up(4 * resources.threads(), sample.format.parts), 1,
                                  std::max<int64_t>(1, sample.rows / kLeastRows))),
        run_rows_(divide_up(sample.rows, runs_)),
        nearest_(static_cast<size_t>(sample.format.parts)),
        labels_(sample.format.parts * sample.rows, "labels", resources),
        sums_(resources.threads() > 1 ? tasks() * sum_values() : 0, "sums of rows", resources),
        counts_(resources.threads() > 1 ? tasks() * sample.format.codewords() : 0, "sums of rows", resources),
        scratch_(resources.threads() * NearestCodeword::scratch_floats(sample.format.part_cols()), "a block of rows",
                 resources) {}

  void run(const float* codewords, const std::vector<uint8_t>& active, double* sums, double* counts) override {
    const int64_t cols = sample_.format.part_cols();
    const int64_t count = sample_.format.codewords();
    const bool apart = sums_.size() > 0;
    ProgressMeter meter("train codewords", 0, resources_);
    parallel_for(sample_.format.parts, meter, resources_, [&](int64_t p, int) {
      if (active[static_cast<size_t>(p)] == 0) return;
      nearest_[static_cast<size_t>(p)].set(codewords + p * sum_values(), count, cols);
      std::fill_n(sums + p * sum_values(), sum_values(), 0.0);
      std::fill_n(counts + p * count, count, 0.0);
    });
    parallel_for(tasks(), meter, resources_, [&](int64_t task, int slot) {
      const int64_t p = task / runs_;
      if (active[static_cast<size_t>(p)] == 0) return;
      double* const own_sums = apart ? sums_.data() + task * sum_values() : sums + p * sum_values();
      double* const own_counts = apart ? counts_.data() + task * count : counts + p * count;
      if (apart) {
        std::fill_n(own_sums, sum_values(), 0.0);
        std::fill_n(own_counts, count, 0.0);
      }
      float* const scratch = scratch_.data() + slot * NearestCodeword::scratch_floats(cols);
      const int64_t end = std::min(sample_.rows, (task % runs_ + 1) * run_rows_);
      for (int64_t first = task % runs_ * run_rows_; first < end; first += kBlockRows) {
        const int64_t some = std::min(kBlockRows, end - first);
        const float* const rows = sample_.part(p) + first * cols;
        uint8_t* const labels = labels_.data() + p * sample_.rows + first;
        nearest_[static_cast<size_t>(p)].nearest(rows, cols, some, labels, 1, scratch);
        add_rows_cpu(MatrixView(rows, some, cols), labels, own_sums, own_counts);
      }
    });
    for (int64_t task = 0; apart && task < tasks(); ++task) {
      const int64_t p = task / runs_;
      if (active[static_cast<size_t>(p)] == 0) continue;
      for (int64_t i = 0; i < sum_values(); ++i) sums[p * sum_values() + i] += sums_[task * sum_values() + i];
      for (int64_t k = 0; k < count; ++k) counts[p * count + k] += counts_[task * count + k];
    }
  }

  void get_labels(int64_t part, uint8_t* labels) override {
    std::copy_n(labels_.data() + part * sample_.rows, sample_.rows, labels);
  }

 private:
  int64_t tasks() const { return sample_.format.parts * runs_; }
  int64_t sum_values() const { return sample_.format.codewords() * sample_.format.part_cols(); }  // of a part

  const ProductSample& sample_;
  const Resources resources_;
  const int64_t runs_;  // of each part's rows
  const int64_t run_rows_;
  std::vector<NearestCodeword> nearest_;
  HostArray<uint8_t> labels_;
  HostArray<double> sums_;  // of each task; none where one thread does them all
  HostArray<double> counts_;
  HostArray<float> scratch_;
};

void check_rows(const CodeFormat& format, int64_t rows, const Resources& resources) {
  const int64_t count = format.codewords();
  if (rows < count) {
    throw InvalidArgument(
        fmt::format("{} rows cannot train {} codewords; give at least {} rows ({} train well), or fewer bits", rows,
                    count, count, kFewRowsPerCodeword * count));
  }
  if (rows < kFewRowsPerCodeword * count) {
    resources.log(LogLevel::warning, fmt::format("product quantizer: {} rows train {} codewords; {} or more train well",
                                                 rows, count, kFewRowsPerCodeword * count));
  }
}

std::unique_ptr<ProductPass> make_pass(const ProductSample& sample, Device device, const Resources& resources) {
  return dispatch(
      device, [&]() -> std::unique_ptr<ProductPass> { return std::make_unique<ProductPassCpu>(sample, resources); },
      [&](int index) { return make_product_pass_cuda(sample, index, resources); });
}

// The working memory of training, beside the sample.
struct PartSums {
  PartSums(const ProductSample& sample, const Resources& resources)
      : sums(sample.format.codewords() * sample.format.cols, "sums of rows", resources),
        counts(sample.format.codewords() * sample.format.parts, "sums of rows", resources),
        labels(sample.rows, "labels", resources) {}

  HostArray<double> sums;
  HostArray<double> counts;
  HostArray<uint8_t> labels;  // of a part
};

// The memory of training `parts` parts together, with `available` bytes on the host.
Footprint parts_footprint(const CodeFormat& whole, int64_t parts, const RowsInfo& rows, Device device,
                          int64_t available, const Resources& resources) {
  const int64_t sampled = sampled_rows(whole, rows.rows);
  const CodeFormat format = PartRange{0, parts}.of(whole);
  const Footprint passes = counted(resources, [&](const Resources& counting) {
    const ProductSample sample(format, sampled, counting);
    const PartSums sums(sample, counting);
    (void)make_pass(sample, device, counting);
  });
  const Footprint block = array_footprint<float>(gathered_rows(whole, sampled, available), whole.cols)
                              .beside(gathering_footprint(rows, sampled, resources));
  const Footprint drawing =
      array_footprint<float>(sampled, format.cols).beside(sample_footprint(rows.rows).then(block));
  return passes.then(drawing);
}

bool parts_fit(const CodeFormat& format, int64_t parts, const RowsInfo& rows, Device device,
               const Resources& resources) {
  const int64_t available = resources.host_memory()->available();
  return !counts_memory(resources) ||
         has_room_for(parts_footprint(format, parts, rows, device, available, resources), resources);
}

// The number of parts to train together, at least one: the fewest groups of nearly equal size that fit in memory.
int64_t parts_together(const CodeFormat& format, const RowsInfo& rows, Device device, const Resources& resources) {
  int64_t groups = 1;
  while (groups < format.parts && !parts_fit(format, divide_up(format.parts, groups), rows, device, resources)) {
    ++groups;
  }
  return divide_up(format.parts, groups);
}

Device resolve_training_device(const CodeFormat& format, const RowsInfo& rows, const Resources& resources) {
  const auto values = static_cast<double>(sampled_rows(format, rows.rows) * format.cols);
  return choose_device(
      {"product training", [&] { return fmt::format("codewords of {} x {} vectors", rows.rows, format.cols); }},
      {rows.space},
      {{CostUnit::f32_training, 2.0 * static_cast<double>(kProductIterations * format.codewords()) * values},
       {CostUnit::copied_byte, 4 * values}},
      [&](Device gpu) { return parts_fit(format, 1, rows, gpu, resources); }, resources);
}

}  // namespace

Footprint product_training_footprint(const CodeFormat& format, const RowsInfo& rows, const Resources& resources) {
  return parts_footprint(format, 1, rows, counted_device(rows.space, resources), 0, resources);
}

ProductSample draw_product_sample(const CodeFormat& format, const PartRange& parts, RowSource& source, uint64_t seed,
                                  const Resources& resources) {
  const int64_t all = source.rows();
  const int64_t cols = format.part_cols();
  ProductSample sample(parts.of(format), sampled_rows(format, all), resources);
  const std::vector<uint32_t> drawn = drawn_rows(CounterRng(seed, kSampleStream), all, sample.rows, resources);
  const int64_t together = gathered_rows(format, sample.rows, resources.host_memory()->available());
  const HostArray<float> some(together * format.cols, "a block of rows", resources);
  ProgressMeter meter("sample", sample.rows, resources);
  for (int64_t first = 0; first < sample.rows; first += together) {
    const int64_t count = std::min(together, sample.rows - first);
    const std::vector<uint32_t> numbers(drawn.begin() + first, drawn.begin() + first + count);
    gather_as_floats(source, numbers, some.data(), resources);
    parallel_for(parts.count, meter, resources, [&](int64_t p, int) {
      const float* const from = some.data() + (parts.first + p) * cols;
      float* const to = sample.values.data() + (p * sample.rows + first) * cols;
      for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * format.cols, cols, to + i * cols);
    });
    meter.add(count);
    meter.poll();
  }
  parallel_for(parts.count, meter, resources, [&](int64_t p, int) {
    round_columns(sample.values.data() + p * sample.rows * cols, sample.rows, cols);
  });
  meter.finish();
  return sample;
}

namespace {

// Trains the codewords of some parts.
void train_parts(const CodeFormat& whole, const PartRange& parts, RowSource& source, uint64_t seed, Device device,
                 float* codewords, const Resources& resources) {
  const ProductSample sample = draw_product_sample(whole, parts, source, seed, resources);
  const CodeFormat& format = sample.format;
  const int64_t cols = format.part_cols();
  const int64_t count = format.codewords();
  std::vector<uint8_t> active(static_cast<size_t>(format.parts), 1);
  const PartSums memory(sample, resources);
  const auto& [sums, counts, labels] = memory;
  ProgressMeter meter("train codewords", kProductIterations * format.parts, resources);
  parallel_for(format.parts, meter, resources, [&](int64_t p, int) {
    const auto stream = kSampleStream + 1 + static_cast<uint64_t>(parts.first + p);
    choose_first_codewords(sample, p, CounterRng(seed, stream), codewords + p * count * cols);
  });
  const std::unique_ptr<ProductPass> pass = make_pass(sample, device, resources);
  for (int64_t iteration = 0; iteration < kProductIterations; ++iteration) {
    pass->run(codewords, active, sums.data(), counts.data());
    const auto has_empty = [&](int64_t p) {
      const double* const own = memory.counts.data() + p * count;
      return std::find(own, own + count, 0.0) != own + count;
    };
    for (int64_t p = 0; p < format.parts; ++p) {
      if (active[static_cast<size_t>(p)] == 0 || !has_empty(p)) continue;
      pass->get_labels(p, labels.data());
      fill_empty(sample, p, codewords + p * count * cols, labels.data(), sums.data() + p * count * cols,
                 counts.data() + p * count);
    }
    parallel_for(format.parts, meter, resources, [&](int64_t p, int) {
      meter.add(1);
      if (active[static_cast<size_t>(p)] == 0) return;
      // Codewords that stay have the same rows again.
      const bool moved = move_codewords(count, cols, memory.sums.data() + p * count * cols,
                                        memory.counts.data() + p * count, codewords + p * count * cols);
      if (!moved) active[static_cast<size_t>(p)] = 0;
    });
    meter.poll();
    if (std::find(active.begin(), active.end(), 1) == active.end()) break;
  }
  meter.finish();
}

}  // namespace

std::vector<float> train_product(const CodeFormat& format, RowSource& source, uint64_t seed,
                                 const Resources& resources) {
  check_rows(format, source.rows(), resources);
  std::vector<float> codewords(static_cast<size_t>(format.codewords() * format.cols));
  const Device device = resolve_training_device(format, source.info(), resources);
  const int64_t together = parts_together(format, source.info(), device, resources);
  for (int64_t first = 0; first < format.parts; first += together) {
    const PartRange parts{first, std::min(together, format.parts - first)};
    float* const own = codewords.data() + first * format.codewords() * format.part_cols();
    train_parts(format, parts, source, seed, device, own, resources);
  }
  return codewords;
}

}  // namespace kith
