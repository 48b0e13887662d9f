#include "cluster/nearest_centre.hpp"

#include "core/ordered_key.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// A multiple of every panel width; several of them where their panels stay in the first-level cache.
constexpr int64_t kSmallestBlock = 24;
constexpr int64_t kLargestBlock = 192;
constexpr int64_t kBlockBytes = 32 << 10;
constexpr int kCandidates = 8;

struct Candidate {
  float least;  // its value is at least this
  uint32_t centre;
};

// Room for everything that a block needs, carved from one piece of memory.
struct Layout {
  int64_t rows;  // of a block
  int64_t cols;

  int64_t floats() const { return rows * cols * 2 + kSmallestBlock * cols + rows * 8; }
  int64_t bytes() const {
    return floats() * static_cast<int64_t>(sizeof(float)) +
           rows * static_cast<int64_t>(sizeof(Candidate) * kCandidates + sizeof(uint64_t) + sizeof(int32_t)) + 64;
  }
};

}  // namespace

int64_t NearestCentre::block_rows(int64_t cols) {
  const int64_t row_bytes = cols * (CentrePanels::takes_bytes(cols) ? 1 : static_cast<int64_t>(sizeof(float)));
  return std::clamp(kBlockBytes / row_bytes / kSmallestBlock * kSmallestBlock, kSmallestBlock, kLargestBlock);
}

int64_t NearestCentre::bytes_for(int64_t cols) { return Layout{block_rows(cols), cols}.bytes(); }

NearestCentre::NearestCentre(int64_t cols, const Resources& resources)
    : memory_(bytes_for(cols), "assigning rows to centres", resources) {}

// One block of rows against all centres.
class NearestCentre::Block final : public PanelHits {
 public:
  Block(const CentrePanels& centres, const MatrixView& rows, int32_t* labels, float* keys, std::byte* memory)
      : centres_(centres), rows_(rows), labels_(labels), keys_(keys), count_(rows.rows()), cols_(rows.cols()) {
    const Layout layout{block_rows(cols_), cols_};
    best_ = reinterpret_cast<uint64_t*>(memory);
    candidates_ = reinterpret_cast<Candidate*>(best_ + layout.rows);
    sizes_ = reinterpret_cast<int32_t*>(candidates_ + layout.rows * kCandidates);
    float* at = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(sizes_ + layout.rows) + 63) / 64 * 64);
    const auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
    packed_ = take(layout.rows * cols_);
    values_ = take(layout.rows * cols_);
    centred_ = take(kSmallestBlock * cols_);
    for (float** array : {&limits_, &offsets_, &factors_, &constant_, &linear_, &quadratic_, &tilt_}) {
      *array = take(layout.rows);
    }
    width_ = centres.bytes() ? kBytePanelQueries : panel_shape().queries_per_panel;
  }

  void run() {
    for (int64_t first = 0; first < count_; first += width_) pack(first, std::min(width_, count_ - first));
    for (int64_t i = 0; i < count_; ++i) begin(i);
    if (centres_.bytes()) {
      const ByteQueries queries{reinterpret_cast<const int8_t*>(packed_), count_, limits_, factors_, constant_, linear_,
                                quadratic_, tilt_};
      scan_byte_panels(queries, centres_.byte_panels(), 0, centres_.panel_count(), *this);
    } else {
      const PanelQueries queries{packed_, count_, limits_, constant_, linear_, quadratic_};
      scan_panels(queries, centres_.panels(), 0, centres_.panel_count(), *this);
    }
    for (int64_t i = 0; i < count_; ++i) {
      settle(i);
      labels_[i] = static_cast<int32_t>(row_of(best_[i]));
      keys_[i] = key_of_ordered(ordered_of(best_[i]));
    }
  }

  void on_hit(int64_t i, int64_t panel, const float* values) override {
    const float bound = bound_of(i, panel);
    const int64_t first = panel * centres_.rows_per_panel();
    const int64_t count = std::min(centres_.rows_per_panel(), centres_.count() - first);
    for (int64_t j = 0; j < count; ++j) {
      const float value = values[j];
      if (value > limits_[i] + bound) continue;  // a NaN is no reason to drop
      const auto centre = static_cast<uint32_t>(first + j);
      if (centre == row_of(best_[i])) continue;
      if (sizes_[i] == kCandidates) make_room(i);
      candidates_[i * kCandidates + sizes_[i]++] = {value - bound, centre};
      limits_[i] = std::min(limits_[i], value + bound);
    }
  }

 private:
  float bound_of(int64_t i, int64_t panel) const {
    if (centres_.bytes()) {
      const ByteBase base = centres_.byte_panels();
      const ByteQueries queries{nullptr, 0, nullptr, nullptr, constant_, linear_, quadratic_, tilt_};
      return queries.bound(i, base.norms[panel], base.residuals[panel]);
    }
    return ErrorBound{constant_[i], linear_[i], quadratic_[i]}.at(centres_.panels().norms[panel]);
  }

  // Widens, moves and packs the rows of one panel, with their error bounds.
  void pack(int64_t first, int64_t count) {
    const bool differences = has_differences(centres_.kind());
    const float scale = differences ? -2.0f : -1.0f;
    const int64_t row_bytes = byte_words(cols_) * 4;
    int8_t* const bytes = reinterpret_cast<int8_t*>(packed_) + first * row_bytes;
    if (centres_.bytes() && count < width_) std::fill_n(bytes, width_ * row_bytes, int8_t{0});
    for (int64_t i = 0; i < width_; ++i) {
      const int64_t at = first + i;
      if (i >= count) {  // fills the panel up: accepts nothing
        limits_[at] = -kInfinity;
        factors_[at] = constant_[at] = linear_[at] = quadratic_[at] = tilt_[at] = 0;
        continue;
      }
      float* const row = values_ + at * cols_;
      float* const moved = centred_ + i * cols_;
      widen_row(rows_, at, row);
      for (int64_t c = 0; c < cols_; ++c) moved[c] = differences ? row[c] - centres_.origin()[static_cast<size_t>(c)] : row[c];
      const double squared = canonical_squared_norm_cpu(moved, cols_);
      const double norm = std::sqrt(squared);
      // The byte product has fewer roundings; its eight stand for the scales and the conversion.
      const int64_t terms = cols_ + (centres_.bytes() ? 8 : 0);
      ErrorBound bound = differences ? squared_l2_product_bound(norm, terms) : inner_product_bound(norm, terms);
      offsets_[at] = differences ? static_cast<float>(squared) : 0.0f;
      if (!(squared < kLargestSquaredNorm)) bound.constant = kInfinity;
      if (centres_.bytes()) {
        const RoundedRow rounded = round_to_bytes(moved, cols_, width_, bytes + i * 4);
        const float twice = differences ? 2 * (1 + 0x1p-18f) : 1 + 0x1p-18f;
        factors_[at] = scale * rounded.scale;
        bound.linear += twice * rounded.residual;
        tilt_[at] = twice * (static_cast<float>(norm) + rounded.residual);
      }
      constant_[at] = bound.constant;
      linear_[at] = bound.linear;
      quadratic_[at] = bound.quadratic;
    }
    if (!centres_.bytes()) pack_panel(centred_, count, cols_, width_, scale, packed_ + first * cols_);
  }

  // The guess's distance is where row i starts from.
  void begin(int64_t i) {
    const uint32_t guess = labels_[i] == kNoLabel ? 0u : static_cast<uint32_t>(labels_[i]);
    sizes_[i] = 0;
    best_[i] = kPadding;
    limits_[i] = kInfinity;
    score(i, &guess, 1);
  }

  void score(int64_t i, const uint32_t* centres, int64_t count) {
    float keys[kCandidates];
    canonical_keys_cpu(centres_.kind(), {values_ + i * cols_, 0.0}, centres_.centres(), centres, count, keys);
    for (int64_t c = 0; c < count; ++c) best_[i] = std::min(best_[i], pack_neighbor(ordered_key(keys[c]), centres[c]));
    const float limit = key_of_ordered(ordered_of(best_[i])) - offsets_[i];
    if (limit < limits_[i]) limits_[i] = limit;
  }

  // Scores the candidates that are still possible.
  void settle(int64_t i) {
    uint32_t centres[kCandidates];
    int64_t count = 0;
    for (int32_t c = 0; c < sizes_[i]; ++c) {
      const Candidate& candidate = candidates_[i * kCandidates + c];
      if (!(candidate.least > limits_[i])) centres[count++] = candidate.centre;
    }
    sizes_[i] = 0;
    if (count > 0) score(i, centres, count);
  }

  void make_room(int64_t i) {
    Candidate* const list = candidates_ + i * kCandidates;
    const auto possible = [&](const Candidate& candidate) { return !(candidate.least > limits_[i]); };
    sizes_[i] = static_cast<int32_t>(std::partition(list, list + kCandidates, possible) - list);
    if (sizes_[i] == kCandidates) settle(i);
  }

  const CentrePanels& centres_;
  const MatrixView& rows_;
  int32_t* labels_;
  float* keys_;
  int64_t count_;
  int64_t cols_;
  int64_t width_;
  uint64_t* best_;          // the nearest scored so far
  Candidate* candidates_;   // kCandidates for each row
  int32_t* sizes_;
  float* packed_;
  float* values_;           // the rows as f32
  float* centred_;          // one panel of them, moved
  float* limits_;           // the nearest centre's value is at most this
  float* offsets_;          // key = value + offset
  float* factors_;
  float* constant_;
  float* linear_;
  float* quadratic_;
  float* tilt_;
};

void NearestCentre::assign(const CentrePanels& centres, const MatrixView& rows, int32_t* labels, float* keys) {
  const int64_t step = block_rows(rows.cols());
  for (int64_t first = 0; first < rows.rows(); first += step) {
    const MatrixView block = rows.slice(first, std::min(step, rows.rows() - first));
    Block(centres, block, labels + first, keys + first, memory_.data()).run();
  }
}

}  // namespace kith
