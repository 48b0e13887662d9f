#include "cluster/nearest_centre.hpp"

#include "core/ordered_key.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>

namespace kith {
namespace {

// A multiple of every panel width; several of them where their panels stay in the first-level cache.
constexpr int64_t kSmallestBlock = 24;
constexpr int64_t kLargestBlock = 192;
constexpr int64_t kBlockBytes = 32 << 10;
constexpr int kCandidates = 8;

struct Candidate {
  float least;  // its value is at least this
  uint32_t centre;
};

}  // namespace

int64_t NearestCentre::block_rows(int64_t cols) {
  const int64_t row_bytes = cols * (CentrePanels::takes_bytes(cols) ? 1 : static_cast<int64_t>(sizeof(float)));
  return std::clamp(kBlockBytes / row_bytes / kSmallestBlock * kSmallestBlock, kSmallestBlock, kLargestBlock);
}

int64_t NearestCentre::bytes_for(int64_t cols) {
  const int64_t rows = block_rows(cols);
  return RowPanels::bytes_for(rows, cols) +
         rows * (cols * static_cast<int64_t>(sizeof(float)) +
                 static_cast<int64_t>(sizeof(uint64_t) + kCandidates * sizeof(Candidate) + sizeof(int32_t)));
}

NearestCentre::NearestCentre(KeyKind kind, int64_t cols, const Resources& resources)
    : panels_(kind, block_rows(cols), cols, resources),
      rows_(block_rows(cols) * cols * static_cast<int64_t>(sizeof(float)), "a block of rows", resources),
      best_(block_rows(cols) * static_cast<int64_t>(sizeof(uint64_t)), "candidates", resources),
      candidates_(block_rows(cols) * static_cast<int64_t>(kCandidates * sizeof(Candidate)), "candidates", resources),
      sizes_(block_rows(cols) * static_cast<int64_t>(sizeof(int32_t)), "candidates", resources) {}

// One block of rows against all centres.
class NearestCentre::Block final : public PanelHits {
 public:
  Block(NearestCentre& own, const CentrePanels& centres)
      : centres_(centres),
        panels_(own.panels_),
        rows_(own.rows_.as<float>()),
        best_(own.best_.as<uint64_t>()),
        candidates_(own.candidates_.as<Candidate>()),
        sizes_(own.sizes_.as<int32_t>()) {}

  void run(const MatrixView& rows, int32_t* labels, float* keys) {
    const int64_t count = rows.rows();
    for (int64_t i = 0; i < count; ++i) widen_row(rows, i, rows_ + i * rows.cols());
    panels_.pack(rows_, 0, count, centres_.origin());
    for (int64_t i = 0; i < count; ++i) begin(i, labels[i] == kNoLabel ? 0u : static_cast<uint32_t>(labels[i]));
    panels_.scan(centres_, 0, count, *this);
    for (int64_t i = 0; i < count; ++i) {
      settle(i);
      labels[i] = static_cast<int32_t>(row_of(best_[i]));
      keys[i] = key_of_ordered(ordered_of(best_[i]));
    }
  }

  void on_hit(int64_t i, int64_t panel, const float* values) override {
    const float bound = panels_.bound(i, centres_, panel);
    const int64_t first = panel * centres_.rows_per_panel();
    const int64_t count = std::min(centres_.rows_per_panel(), centres_.count() - first);
    for (int64_t j = 0; j < count; ++j) {
      const float value = values[j];
      if (value > panels_.limit(i) + bound) continue;  // a NaN is no reason to drop
      const auto centre = static_cast<uint32_t>(first + j);
      if (centre == row_of(best_[i])) continue;
      if (sizes_[i] == kCandidates) make_room(i);
      candidates_[i * kCandidates + sizes_[i]++] = {value - bound, centre};
      panels_.limit(i) = std::min(panels_.limit(i), value + bound);
    }
  }

 private:
  // The guess's distance is where row i starts from.
  void begin(int64_t i, uint32_t guess) {
    sizes_[i] = 0;
    best_[i] = kPadding;
    score(i, &guess, 1);
  }

  void score(int64_t i, const uint32_t* centres, int64_t count) {
    float keys[kCandidates];
    canonical_keys_cpu(centres_.kind(), {rows_ + i * centres_.cols(), 0.0}, centres_.centres(), centres, count, keys);
    for (int64_t c = 0; c < count; ++c) best_[i] = std::min(best_[i], pack_neighbor(ordered_key(keys[c]), centres[c]));
    const float limit = key_of_ordered(ordered_of(best_[i])) - panels_.offset(i);
    if (limit < panels_.limit(i)) panels_.limit(i) = limit;
  }

  // Scores the candidates that are still possible.
  void settle(int64_t i) {
    uint32_t centres[kCandidates];
    int64_t count = 0;
    for (int32_t c = 0; c < sizes_[i]; ++c) {
      const Candidate& candidate = candidates_[i * kCandidates + c];
      if (!(candidate.least > panels_.limit(i))) centres[count++] = candidate.centre;
    }
    sizes_[i] = 0;
    if (count > 0) score(i, centres, count);
  }

  void make_room(int64_t i) {
    Candidate* const list = candidates_ + i * kCandidates;
    const auto possible = [&](const Candidate& candidate) { return !(candidate.least > panels_.limit(i)); };
    sizes_[i] = static_cast<int32_t>(std::partition(list, list + kCandidates, possible) - list);
    if (sizes_[i] == kCandidates) settle(i);
  }

  const CentrePanels& centres_;
  RowPanels& panels_;
  float* rows_;
  uint64_t* best_;
  Candidate* candidates_;
  int32_t* sizes_;
};

void NearestCentre::assign(const CentrePanels& centres, const MatrixView& rows, int32_t* labels, float* keys) {
  const int64_t step = block_rows(rows.cols());
  for (int64_t first = 0; first < rows.rows(); first += step) {
    const MatrixView block = rows.slice(first, std::min(step, rows.rows() - first));
    Block(*this, centres).run(block, labels + first, keys + first);
  }
}

}  // namespace kith
