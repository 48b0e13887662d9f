#include "kernels/assign/assign_cpu.hpp"

#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kith {
namespace {

// With fewer columns the sums no longer dominate.
constexpr int64_t kFewestRoundedColumns = 16;
// A multiple of every panel width; larger if the panels stay in the L1 cache.
constexpr int64_t kSmallestBlock = 24;
constexpr int64_t kLargestBlock = 192;
constexpr int64_t kBlockBytes = 32 << 10;
constexpr int kCandidates = 8;
constexpr int64_t kFewBlock = 1024;
// Size limits of the table that is tried when packed bytes rule out too little.
constexpr int64_t kMostTriedCentres = 256;
constexpr int64_t kMostTriedValues = 1 << 18;

// Break-even number of distances per row between packed bytes and the table. Measured in ns per column: a distance
// takes 0.24 (plus a constant 60 ns), the table 0.0155 more per centre.
double worthwhile_distances(int64_t centres, int64_t cols) {
  return 0.0155 * static_cast<double>(centres) / (0.24 + 60 / static_cast<double>(cols));
}

}  // namespace

PanelFormat centre_format(int64_t cols, const CpuExtensions& cpu) {
  const bool rounds = cols >= kFewestRoundedColumns && cols <= kMostRoundedColumns && has_fast_rounded_product(cpu);
  return rounds ? PanelFormat::rounded : PanelFormat::f32;
}

int64_t NearestCentre::block_rows(PanelFormat format, int64_t cols) {
  const int64_t row_bytes = format == PanelFormat::rounded ? cols : array_bytes<float>(cols);
  return std::clamp(kBlockBytes / row_bytes / kSmallestBlock * kSmallestBlock, kSmallestBlock, kLargestBlock);
}

NearestCentre::NearestCentre(KeyKind kind, PanelFormat format, int64_t cols, const Resources& resources)
    : block_(block_rows(format, cols)),
      packed_(kind, format, block_, cols, resources),
      scratch_(PackedQueries::scratch_bytes(format, cols), "packing rows", resources),
      rows_(block_ * cols, "a block of rows", resources),
      limits_(block_, "a block of rows", resources),
      best_(block_, "candidates", resources),
      candidates_(block_ * kCandidates, "candidates", resources),
      candidate_count_(block_, "candidates", resources) {}

// One block of rows against all centres.
class NearestCentre::Block final : public PanelHits {
 public:
  Block(NearestCentre& own, const PackedRows& packed, const MatrixView& centres, int64_t count)
      : own_(own),
        packed_(packed),
        centres_(centres),
        count_(count),
        limits_(own.limits_.data()),
        product_(own.packed_, 0, count, limits_, packed),
        refines_(has_differences(packed.kind())),
        relative_(direct_error(packed.cols())),
        absolute_(static_cast<float>(underflow_error(packed.cols()))) {}

  void run(const MatrixView& rows, int32_t* labels, float* keys) {
    pack(rows);
    guesses_ = labels;
    own_.work_.rows += count_;
    for (int64_t i = 0; i < count_; ++i) begin(i, labels[i]);
    product_.scan(*this);
    for (int64_t i = 0; i < count_; ++i) {
      drop_impossible(i);
      if (own_.candidate_count_[i] > 1) refine(i);
      if (keys == nullptr && own_.best_[i] == kPadding && own_.candidate_count_[i] == 1) {
        labels[i] = static_cast<int32_t>(candidates(i)->centre);
        continue;
      }
      settle(i);
      if (own_.best_[i] == kPadding) compare_with_all(i);  // no product gave a usable value
      labels[i] = static_cast<int32_t>(row_of(own_.best_[i]));
      if (keys != nullptr) keys[i] = key_of_ordered(ordered_of(own_.best_[i]));
    }
  }

  void on_hit(int64_t i, int64_t panel, const float* values) override {
    const float bound = product_.bound(i, panel);
    const int64_t first = panel * packed_.rows_per_panel();
    const int64_t count = std::min(packed_.rows_per_panel(), packed_.rows() - first);
    const int64_t width = packed_.rows_per_panel();
    float limits[kMostRowsPerPanel];
    std::fill_n(limits, width, limits_[i] + bound);
    uint64_t places = places_within(values, limits, width);  // NaN stays
    if (count < 64) places &= (uint64_t{1} << count) - 1;
    float most = limits_[i] + bound;
    for (; places != 0; places &= places - 1) {
      const int j = std::countr_zero(places);
      const float value = values[j];
      if (value > most) continue;
      const auto centre = static_cast<uint32_t>(first + j);
      if (centre == row_of(own_.best_[i]) || static_cast<int32_t>(centre) == guesses_[i]) continue;
      if (own_.candidate_count_[i] == kCandidates) make_room(i);
      candidates(i)[own_.candidate_count_[i]++] = {value - bound, centre, false};
      lower_limit(i, value + bound);
      most = limits_[i] + bound;
    }
  }

 private:
  Candidate* candidates(int64_t i) const { return own_.candidates_.data() + i * kCandidates; }

  // Padding rows of a panel accept nothing.
  void pack(const MatrixView& rows) {
    const int64_t width = own_.packed_.panel_width();
    const bool as_they_lie = rows.dtype() == DType::f32 && rows.row_stride() == rows.cols();
    for (int64_t i = 0; !as_they_lie && i < count_; ++i) widen_row(rows, i, own_.rows_.data() + i * rows.cols());
    rows_ = as_they_lie ? static_cast<const float*>(rows.data()) : own_.rows_.data();
    for (int64_t first = 0; first < count_; first += width) {
      own_.packed_.pack_panel(first / width, rows_ + first * rows.cols(), std::min(width, count_ - first),
                              packed_.origin(), own_.scratch_.data());
    }
    std::fill_n(limits_, count_, kInfinity);
    std::fill(limits_ + count_, limits_ + round_up(count_, width), -kInfinity);
  }

  // Row i starts with the distance of its guess; without a guess everything passes at first.
  void begin(int64_t i, int32_t label) {
    own_.candidate_count_[i] = 0;
    own_.best_[i] = kPadding;
    if (label == kNoLabel) return;
    const auto guess = static_cast<uint32_t>(label);
    if (!refines_) return score(i, &guess, 1);
    candidates(i)[own_.candidate_count_[i]++] = {-kInfinity, guess, false};
    refine(i);
  }

  // Bounds the candidates by f32 sums of squared differences and drops those excluded.
  void refine(int64_t i) {
    if (!refines_) return;
    const float offset = own_.packed_.offset(i);
    for (int32_t c = 0; c < own_.candidate_count_[i]; ++c) {
      Candidate& candidate = candidates(i)[c];
      if (candidate.refined || !possible(i, candidate)) continue;
      float sum;
      ++own_.work_.distances;
      scan_differences_cpu(rows_ + i * packed_.cols(), centres_, candidate.centre, 1, &sum);
      const float error = sum * relative_ + absolute_;
      if (!(error < kInfinity)) continue;  // a NaN, or too large
      candidate = {std::max(candidate.least, sum - error - offset), candidate.centre, true};
      lower_limit(i, sum + error - offset);
    }
    drop_impossible(i);
  }

  void score(int64_t i, const uint32_t* centres, int64_t count) {
    float keys[kCandidates];
    uint64_t& best = own_.best_[i];
    canonical_keys_cpu(packed_.kind(), {rows_ + i * packed_.cols(), 0.0}, centres_, centres, count, keys);
    for (int64_t c = 0; c < count; ++c) best = std::min(best, pack_neighbor(ordered_key(keys[c]), centres[c]));
    const float key = key_of_ordered(ordered_of(best));
    const float limit = (packed_.kind() == KeyKind::l2 ? square_above(key) : key) - own_.packed_.offset(i);
    if (limit < limits_[i]) limits_[i] = limit;
  }

  // No nearest centre has a larger value. (Sums that differ slightly have the same f32 root, and are ties.)
  void lower_limit(int64_t i, float value) {
    if (packed_.kind() == KeyKind::l2) value += 0x1p-20f * std::max(value + own_.packed_.offset(i), 0.0f);
    limits_[i] = std::min(limits_[i], value);
  }

  bool possible(int64_t i, const Candidate& candidate) const { return !(candidate.least > limits_[i]); }

  // Computes the canonical keys of the remaining candidates.
  void settle(int64_t i) {
    uint32_t centres[kCandidates];
    int64_t count = 0;
    for (int32_t c = 0; c < own_.candidate_count_[i]; ++c) {
      if (possible(i, candidates(i)[c])) centres[count++] = candidates(i)[c].centre;
    }
    own_.candidate_count_[i] = 0;
    if (count > 0) score(i, centres, count);
  }

  void compare_with_all(int64_t i) {
    for (int64_t first = 0; first < centres_.rows(); first += kCandidates) {
      uint32_t centres[kCandidates];
      const int64_t count = std::min<int64_t>(kCandidates, centres_.rows() - first);
      for (int64_t c = 0; c < count; ++c) centres[c] = static_cast<uint32_t>(first + c);
      score(i, centres, count);
    }
  }

  void make_room(int64_t i) {
    drop_impossible(i);
    if (own_.candidate_count_[i] == kCandidates) refine(i);
    if (own_.candidate_count_[i] == kCandidates) settle(i);
  }
  void drop_impossible(int64_t i) {
    Candidate* const end = std::partition(candidates(i), candidates(i) + own_.candidate_count_[i],
                                          [&](const Candidate& candidate) { return possible(i, candidate); });
    own_.candidate_count_[i] = static_cast<int32_t>(end - candidates(i));
  }

  NearestCentre& own_;
  const PackedRows& packed_;
  const MatrixView& centres_;
  const int64_t count_;
  float* const limits_;
  const PackedProduct product_;
  const bool refines_;
  const float relative_;  // error of a sum of squared differences in f32, beside what may underflow
  const float absolute_;
  const float* rows_ = nullptr;  // as f32, one after the other
  const int32_t* guesses_ = nullptr;
};

void NearestCentre::assign(const PackedRows& packed, const MatrixView& centres, const MatrixView& rows, int32_t* labels,
                           float* keys) {
  for (int64_t first = 0; first < rows.rows(); first += block_) {
    const int64_t count = std::min(block_, rows.rows() - first);
    Block(*this, packed, centres, count)
        .run(rows.slice(first, count), labels + first, keys == nullptr ? nullptr : keys + first);
  }
}

CentreAssigner::CentreAssigner(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity,
                               const Resources& resources) {
  const auto cols = static_cast<int64_t>(origin.size());
  uses_table_ = has_table(capacity, cols, format);
  const bool both = kind == KeyKind::squared_l2 && capacity <= kMostTriedCentres && capacity * cols <= kMostTriedValues;
  if (uses_table_ || (format == PanelFormat::rounded && both)) {
    few_.emplace(kind, origin, capacity, resources);
    scratch_floats_ = CentreTable::scratch_floats(capacity, cols);
    scratch_ = HostArray<float>(resources.threads() * scratch_floats_, "a block of rows", resources);
  }
  block_ = uses_table_ ? kFewBlock : NearestCentre::block_rows(format, cols);
  if (uses_table_) return;
  packed_.emplace(kind, format, std::move(origin), capacity, resources);
  for (int slot = 0; slot < resources.threads(); ++slot) nearest_.emplace_back(kind, format, cols, resources);
}

void CentreAssigner::set(const MatrixView& centres, ProgressMeter& meter, const Resources& resources) {
  centres_ = centres;
  if (few_ && packed_) choose_form();
  uses_table_ ? few_->set(centres) : packed_->pack(centres, {}, meter, resources);
}

void CentreAssigner::choose_form() {
  if (uses_table_) {
    uses_table_ = --passes_left_ > 0;
    return;
  }
  NearestCentre::Work all;
  for (NearestCentre& nearest : nearest_) {
    const NearestCentre::Work work = nearest.take_work();
    all.rows += work.rows;
    all.distances += work.distances;
  }
  // Every row has one distance anyway: to its centre of the previous pass.
  const double most = (1 + worthwhile_distances(centres_.rows(), centres_.cols())) * static_cast<double>(all.rows);
  uses_table_ = static_cast<double>(all.distances) > most;
  if (!uses_table_) return;
  passes_left_ = wait_;
  wait_ *= 2;
}

bool CentreAssigner::assign(const MatrixView& rows, int32_t* labels, float* keys, int slot) {
  if (uses_table_) return few_->nearest(rows, labels, keys, scratch_.data() + slot * scratch_floats_);
  nearest_[static_cast<size_t>(slot)].assign(*packed_, centres_, rows, labels, keys);
  return true;
}

}  // namespace kith
