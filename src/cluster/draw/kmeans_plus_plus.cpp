#include "cluster/draw/kmeans_plus_plus.hpp"

#include "core/divide.hpp"
#include "core/typed_row.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// A block's room among the packed rows: a multiple of every panel width.
constexpr int64_t kPackedBlock = round_up(kSumBlock, 24);
static_assert(kSumBlock == kDrawBlock);

}  // namespace

// 2 + ln(clusters), as in scikit-learn, and twice that for few centres, where trials are cheap and a missed cluster
// matters. Integer arithmetic, so that all machines agree.
int64_t plus_plus_trials(int64_t clusters) {
  constexpr int64_t kFewClusters = 256;
  constexpr double kE = 2.718281828459045;
  double power = kE;
  int64_t trials = 2;
  while (power <= static_cast<double>(clusters)) {
    power *= kE;
    ++trials;
  }
  return clusters <= kFewClusters ? 2 * trials : trials;
}

double plus_plus_share(const CounterRng& rng, uint64_t number) {
  const Random4 words = rng.block(number);
  const uint64_t bits = static_cast<uint64_t>(words.word[0]) << 32 | words.word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

uint32_t first_plus_plus_row(int64_t rows, const float* weights, const CounterRng& rng) {
  const DrawTree tree(rows);
  const auto step = [&](int64_t i) { return weights == nullptr ? 1.0 : static_cast<double>(weights[i]); };
  const auto segment = [&](int64_t block, int place) {
    const int64_t s = block * kDrawFan + place;
    return sum_children([&](int i) { return step(s * kDrawFan + i); }, DrawTree::children_of(s, rows));
  };
  std::vector<double> sums(static_cast<size_t>(tree.size));
  for (int64_t block = 0; block < tree.blocks(); ++block) {
    sums[static_cast<size_t>(block)] =
        weights == nullptr  // whole numbers: exact
            ? static_cast<double>(std::min(kDrawBlock, rows - block * kDrawBlock))
            : sum_children([&](int i) { return segment(block, i); }, DrawTree::children_of(block, tree.segments));
  }
  add_up_tree(tree, sums.data());
  return draw_row(tree, sums.data(), plus_plus_share(rng, 0) * tree_total(tree, sums.data()), segment, step);
}

KMeansPlusPlus::KMeansPlusPlus(PanelFormat format, const PlusPlusRows& rows, int64_t clusters,
                               const Resources& resources)
    : from_(rows),
      clusters_(clusters),
      trials_(plus_plus_trials(clusters)),
      tree_(from_.rows),
      together_(from_.packed_stay ? kPackedBlock : NearestCentre::block_rows(format, from_.cols)),
      nearest_(tree_.rows, "k-means++", resources),
      distances_(tree_.rows * trials_, "k-means++", resources),
      trial_rows_(DType::f32, trials_, from_.cols, "k-means++", resources),
      packed_trials_(KeyKind::squared_l2, format,
                     from_.source == nullptr ? std::vector<float>(static_cast<size_t>(from_.cols))
                                             : sample_mean(*from_.source, from_.cols),
                     trials_, resources),
      packing_(PackedRows::scratch_bytes(format, from_.cols), "packing", resources),
      packed_(KeyKind::squared_l2, format, from_.packed_stay ? tree_.blocks() * kPackedBlock : 0, from_.cols,
              resources),
      sums_(tree_.size, "k-means++", resources),
      trial_sums_(tree_.size * trials_, "k-means++", resources) {
  for (int slot = 0; slot < resources.threads(); ++slot) {
    Scratch& own = scratch_.emplace_back();
    own.limits = HostArray<float>(kPackedBlock, "k-means++", resources);
    own.rows = HostArray<float>(kMostQueriesPerPanel * from_.cols, "k-means++", resources);
    own.packing = HostArray<std::byte>(PackedQueries::scratch_bytes(format, from_.cols), "packing", resources);
    if (!from_.packed_stay) own.packed = PackedQueries(KeyKind::squared_l2, format, together_, from_.cols, resources);
  }
}

template <typename Use>
void KMeansPlusPlus::for_pieces(const Use& use) {
  for (int64_t first = 0; first < tree_.rows; first += from_.piece_rows) {
    use(from_.source->fetch(first, std::min(from_.piece_rows, tree_.rows - first)), first);
  }
}

void KMeansPlusPlus::pack_all(ProgressMeter& meter, const Resources& resources) {
  for_pieces([&](const MatrixView& piece, int64_t first) {
    parallel_for(divide_up(piece.rows(), kSumBlock), meter, resources, [&](int64_t task, int slot) {
      const int64_t at = task * kSumBlock;
      pack(piece, at, std::min(kSumBlock, piece.rows() - at), packed_, (first + at) / kSumBlock * kPackedBlock,
           scratch_[static_cast<size_t>(slot)]);
    });
  });
}

// Packs rows from `first` on to `place` and after.
void KMeansPlusPlus::pack(const MatrixView& rows, int64_t first, int64_t count, PackedQueries& packed, int64_t place,
                          Scratch& scratch) {
  const int64_t width = packed.panel_width();
  float* const values = scratch.rows.data();
  for (int64_t done = 0; done < count; done += width) {
    const int64_t some = std::min(width, count - done);
    for (int64_t i = 0; i < some; ++i) widen_row(rows, first + done + i, values + i * from_.cols);
    packed.pack_panel((place + done) / width, values, some, packed_trials_.origin(), scratch.packing.data());
  }
}

// Computes distances of some rows to those trial rows that may be nearer than their nearest centre.
class KMeansPlusPlus::Hits final : public PanelHits {
 public:
  // `rows` begin with row `first`, and with `place` among the packed ones.
  Hits(KMeansPlusPlus& own, const MatrixView& rows, int64_t first, const PackedQueries& packed, int64_t place,
       Scratch& scratch)
      : own_(own),
        rows_(rows),
        first_(first),
        scratch_(scratch),
        product_(packed, place, rows.rows(), scratch.limits.data(), own.packed_trials_) {
    for (int64_t i = 0; i < rows.rows(); ++i) {
      scratch.limits[i] = own.nearest_[first + i] - packed.offset(place + i);
    }
    // Rows that only fill up accept nothing.
    std::fill(scratch.limits.data() + rows.rows(), scratch.limits.data() + round_up(rows.rows(), packed.panel_width()),
              -INFINITY);
  }

  void scan() { product_.scan(*this); }

  void on_hit(int64_t i, int64_t panel, const float* values) override {
    const PackedRows& trials = own_.packed_trials_;
    const float limit = scratch_.limits[i] + product_.bound(i, panel);
    const float* row = scratch_.rows.data();
    if (rows_.dtype() == DType::f32) {
      row = typed_row<float>(rows_, i);
    } else {
      widen_row(rows_, i, scratch_.rows.data());
    }
    const int64_t first = panel * trials.rows_per_panel();
    uint32_t near[kMostRowsPerPanel];
    float keys[kMostRowsPerPanel];
    int64_t count = 0;
    for (int64_t t = first; t < std::min(first + trials.rows_per_panel(), trials.rows()); ++t) {
      if (!(values[t - first] > limit)) near[count++] = static_cast<uint32_t>(t);  // a NaN is no reason to skip
    }
    canonical_keys_cpu(KeyKind::squared_l2, {row, 0.0}, own_.trial_rows_.view(), near, count, keys);
    for (int64_t n = 0; n < count; ++n) {
      float& distance = own_.distances_[near[n] * own_.tree_.rows + first_ + i];
      distance = std::min(distance, keys[n]);
    }
  }

 private:
  KMeansPlusPlus& own_;
  const MatrixView rows_;
  const int64_t first_;
  Scratch& scratch_;
  const PackedProduct product_;
};

void KMeansPlusPlus::try_block(const MatrixView& piece, int64_t piece_first, int64_t block, int64_t trials,
                               Scratch& scratch) {
  const int64_t first = block * kSumBlock;
  const int64_t count = std::min(kSumBlock, tree_.rows - first);
  for (int64_t t = 0; t < trials; ++t) {
    std::copy_n(nearest_.data() + first, count, distances_.data() + t * tree_.rows + first);
  }
  for (int64_t done = 0; done < count; done += together_) {
    const MatrixView some = piece.slice(first - piece_first + done, std::min(together_, count - done));
    if (from_.packed_stay) {
      Hits(*this, some, first, packed_, block * kPackedBlock, scratch).scan();
    } else {
      pack(some, 0, some.rows(), scratch.packed, 0, scratch);
      Hits(*this, some, first + done, scratch.packed, 0, scratch).scan();
    }
  }
  for (int64_t t = 0; t < trials; ++t) {
    const DrawSteps steps{distances_.data() + t * tree_.rows, from_.weights};
    trial_sums_[t * tree_.size + block] = steps.block(tree_, block);
  }
}

double KMeansPlusPlus::take_best(const std::vector<uint32_t>& trials, uint32_t* chosen, ProgressMeter& meter,
                                 const Resources& resources) {
  const auto count = static_cast<int64_t>(trials.size());
  const MutableMatrixView centres = trial_rows_.mutable_view().slice(0, count);
  gather_as_floats(*from_.source, trials, static_cast<float*>(centres.data()), resources);
  packed_trials_.pack(centres, packing_.data());
  for_pieces([&](const MatrixView& piece, int64_t first) {
    parallel_for(divide_up(piece.rows(), kSumBlock), meter, resources, [&](int64_t task, int slot) {
      try_block(piece, first, first / kSumBlock + task, count, scratch_[static_cast<size_t>(slot)]);
    });
    meter.checkpoint();
  });
  int64_t best = 0;
  double lowest = INFINITY;
  for (int64_t t = 0; t < count; ++t) {
    double* const sums = trial_sums_.data() + t * tree_.size;
    add_up_tree(tree_, sums);
    const double potential = tree_total(tree_, sums);
    if (!(potential < lowest)) continue;
    lowest = potential;
    best = t;
  }
  std::copy_n(distances_.data() + best * tree_.rows, tree_.rows, nearest_.data());
  std::copy_n(trial_sums_.data() + best * tree_.size, tree_.size, sums_.data());
  meter.add(tree_.rows);
  *chosen = trials[static_cast<size_t>(best)];
  return tree_total(tree_, sums_.data());
}

std::vector<uint32_t> KMeansPlusPlus::choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources,
                                             std::vector<double>* potentials) {
  if (from_.packed_stay) pack_all(meter, resources);
  std::fill(nearest_.begin(), nearest_.end(), INFINITY);
  std::vector<uint32_t> chosen(static_cast<size_t>(clusters_));
  std::vector<uint32_t> trials{first_plus_plus_row(tree_.rows, from_.weights, rng)};
  uint64_t number = 1;
  for (uint32_t& centre : chosen) {
    const double potential = take_best(trials, &centre, meter, resources);
    if (potentials != nullptr) potentials->push_back(potential);
    trials.resize(static_cast<size_t>(trials_));
    const DrawSteps steps{nearest_.data(), from_.weights};
    for (uint32_t& trial : trials) trial = draw_by_share(tree_, sums_.data(), steps, plus_plus_share(rng, number++));
  }
  return chosen;
}

}  // namespace kith
