#include "paths/near_in_cells.hpp"

#include <kith/error.hpp>
#include <kith/kmeans.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/pairwise_distances.hpp>
#include <kith/range_search.hpp>

#include "core/host_array.hpp"
#include "core/random.hpp"
#include "core/typed_row.hpp"
#include "io/container/xxh3.hpp"
#include "rows/row_blocks.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsOfCentre = 32;      // that learn it
constexpr int64_t kIterations = 8;
constexpr int64_t kRowsAtATime = 1024;       // compared with all centres at a time
constexpr int64_t kFoundPairs = 1 << 22;   // room for the ranges of a block of queries
constexpr int64_t kLeastQueries = 64;      // of such a block
constexpr int64_t kAskedOfRow = 4;         // cells for each row, on average, for which there is room at a time
constexpr uint64_t kCentreDraw = 0x4E656172;  // the stream of random numbers
constexpr int64_t kTrial = 1024;           // of more queries of a cell a few are asked first
constexpr float kWidestAngle = 0.9f;       // by cosine: a row of zeros is 1 from all
constexpr double kFarthest = 1e18;         // its square is an f32 still

// Distances of the cells' space, in which f is linear: of the rows, or of the rows at length 1.
class CellSpace {
 public:
  CellSpace(const NearPairs& wanted, int64_t cols) : metric_(wanted.metric), radius_(reach(wanted, cols)) {}

  static bool has(Metric metric) { return metric != Metric::chi_square && metric != Metric::hamming; }

  // In which distances to centres are asked for.
  Metric metric() const { return metric_ == Metric::cosine ? Metric::cosine : Metric::l2; }
  bool is_spherical() const { return metric_ == Metric::cosine; }
  double square(float distance) const {
    return is_spherical() ? 2.0 * distance : static_cast<double>(distance) * distance;
  }
  double radius() const { return radius_; }
  // More than rounding may change of f at a row with these squares, and at another within the radius of it.
  double rounding(double to_a, double to_b) const {
    constexpr double kRelative = 0x1p-19;
    return is_spherical() ? kRelative : kRelative * (2 * (to_a + to_b) + 4 * radius_ * radius_) + 1e-44;
  }

 private:
  // Rows within the radius of the metric are within this of each other here: |z| <= the sum, <= sqrt(cols) * the largest
  // of its values.
  static double reach(const NearPairs& wanted, int64_t cols) {
    const double radius = wanted.radius * (1 + 0x1p-20) + 0x1p-149;  // of distances that are rounded to an f32
    switch (wanted.metric) {
      case Metric::sqeuclidean: return std::sqrt(radius);
      case Metric::linf: return radius * std::sqrt(static_cast<double>(cols));
      case Metric::cosine: return std::sqrt(2 * radius + 0x1p-40);
      default: return radius;
    }
  }

  Metric metric_;
  double radius_;
};

// The least row of all that are equal, in order. The others are joined to it, where a row is within the radius of itself (by
// cosine zero is not).
HostArray<uint32_t> distinct_rows(const MatrixView& x, const NearPairs& wanted, const RowSets& sets,
                                  const Resources& resources) {
  struct Hashed {
    uint64_t hash;
    uint32_t row;
  };
  const auto bytes = static_cast<size_t>(x.cols() * size_of(x.dtype()));
  HostArray<Hashed> hashed(x.rows(), "hashes of rows", resources);
  for_row_blocks("hash rows", x.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      hashed[row] = {xxh3({x.row(row), bytes}), static_cast<uint32_t>(row)};
    }
  });
  std::sort(hashed.begin(), hashed.end(), [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.row < b.row;
  });
  const auto is_near_itself = [&](uint32_t row) {
    if (wanted.metric != Metric::cosine) return true;
    float distance = 0;
    const MatrixView one = x.slice(row, 1);
    pairwise_distances(one, one, MutableMatrixView(&distance, 1, 1), {.metric = wanted.metric}, resources);
    return distance <= wanted.radius;
  };
  HostArray<uint32_t> rows(x.rows(), "rows without equal ones", resources);
  int64_t kept = 0;
  for (int64_t first = 0; first < hashed.size();) {
    int64_t end = first + 1;
    while (end < hashed.size() && hashed[end].hash == hashed[first].hash) ++end;
    const uint32_t least = hashed[first].row;
    rows[kept++] = least;
    const bool joins = end - first > 1 && is_near_itself(least);
    for (int64_t i = first + 1; i < end; ++i) {
      if (joins && std::memcmp(x.row(least), x.row(hashed[i].row), bytes) == 0) {
        sets.join(least, hashed[i].row);
      } else {
        rows[kept++] = hashed[i].row;
      }
    }
    first = end;
  }
  std::sort(rows.begin(), rows.begin() + kept);
  HostArray<uint32_t> few(kept, "rows without equal ones", resources);
  std::copy_n(rows.begin(), kept, few.begin());
  return few;
}

class CellJoin {
 public:
  CellJoin(const MatrixView& x, const NearPairs& wanted, const RowSets& sets, const Resources& resources)
      : x_(x),
        wanted_(wanted),
        space_(wanted, x.cols()),
        sets_(sets),
        resources_(resources),
        quiet_(resources.with_log({}).with_progress({})),
        rows_(distinct_rows(x, wanted, sets, quiet_)),
        cells_(std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(rows_.size()))))) {}

  bool run() {
    if (rows_.size() < wanted_.many && 2 * rows_.size() > x_.rows()) return false;
    if (rows_.size() > 1) {
      learn_centres();
      if (!assign() || work_within() > most_work()) return false;
      join_within();
      join_firsts();
      return join_across();
    }
    return true;
  }

 private:
  int64_t row_bytes() const { return x_.cols() * size_of(x_.dtype()); }
  // Comparisons after which all pairs would have been the better choice: each pair once, and in larger blocks, which takes a
  // fifth of the time.
  double most_work() const { return 0.0625 * static_cast<double>(rows_.size()) * static_cast<double>(rows_.size()); }

  MatrixView gathered(std::span<const uint32_t> rows, MatrixBuffer& into) const {
    const MutableMatrixView out = into.mutable_view().slice(0, std::ssize(rows));
    for (int64_t i = 0; i < std::ssize(rows); ++i) {
      std::memcpy(out.row(i), x_.row(rows[static_cast<size_t>(i)]), static_cast<size_t>(row_bytes()));
    }
    return out;
  }
  MatrixBuffer room_for(int64_t rows) const { return {x_.dtype(), rows, x_.cols(), "rows of cells", quiet_}; }

  void learn_centres() {
    const CounterRng rng(wanted_.seed, kCentreDraw);
    std::vector<uint32_t> drawn = drawn_rows(rng, rows_.size(), kRowsOfCentre * cells_, quiet_);
    for (uint32_t& row : drawn) row = rows_[row];
    MatrixBuffer sample = room_for(std::ssize(drawn));
    KMeans learned({.clusters = cells_,
                    .iterations = kIterations,
                    .init = KMeansInit::random,
                    .seed = wanted_.seed,
                    .spherical = space_.is_spherical(),
                    .compute_labels = false,
                    .history = false});
    learned.fit(gathered(drawn, sample), {}, quiet_);
    centres_ = MatrixBuffer(DType::f32, cells_, x_.cols(), "centres of cells", quiet_);
    std::memcpy(centres_.mutable_view().row(0), learned.snapshot().centres.row(0),
                static_cast<size_t>(cells_ * x_.cols()) * sizeof(float));
    between_ = MatrixBuffer(DType::f32, cells_, cells_, "distances of centres", quiet_);
    pairwise_distances(centres_.view(), centres_.view(), between_.mutable_view(), {.metric = space_.metric()}, quiet_);
  }

  // use(i, distances) for the i-th of these rows, on all threads, and then(done) after each block. False where a centre is
  // too far, or `then` says so.
  template <typename Use, typename Then>
  bool for_distances(std::span<const uint32_t> rows, const Use& use, const Then& then) const {
    const int64_t most = std::min<int64_t>(kRowsAtATime, std::ssize(rows));
    MatrixBuffer some = room_for(most);
    MatrixBuffer distances(DType::f32, most, cells_, "distances to centres", quiet_);
    for (int64_t first = 0; first < std::ssize(rows); first += most) {
      const int64_t count = std::min(most, std::ssize(rows) - first);
      const MatrixView block = gathered(rows.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), some);
      const MutableMatrixView out = distances.mutable_view().slice(0, count);
      pairwise_distances(block, centres_.view(), out, {.metric = space_.metric(), .check_finite = false}, quiet_);
      std::atomic<bool> too_far = false;
      for_row_blocks(
          "near cells", count, quiet_,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const auto* const to = typed_row<float>(out, i);
              if (!(*std::max_element(to, to + cells_) < kFarthest)) too_far = true;
              use(first + i, to);
            }
          },
          64);
      resources_.check_cancelled();
      if (too_far || !then(first + count)) return false;
    }
    return true;
  }

  // Whether a row of cell a may have near rows in cell b.
  bool is_near(int64_t a, int64_t b, const float* to) const {
    const double to_a = space_.square(to[a]);
    const double to_b = space_.square(to[b]);
    const double apart = std::sqrt(space_.square(typed_row<float>(between_.view(), a)[b]));
    return !(to_b - to_a > 2 * space_.radius() * apart * (1 + 0x1p-20) + space_.rounding(to_a, to_b));
  }

  // Puts rows_ in the order of their cells, and of each cell first those at a border.
  bool assign() {
    HostArray<int32_t> cell_of(rows_.size(), "cells of rows", quiet_);
    HostArray<uint8_t> at_border(rows_.size(), "rows at borders", quiet_);
    const auto put = [&](int64_t i, const float* to) {
      const int64_t cell = std::min_element(to, to + cells_) - to;
      cell_of[i] = static_cast<int32_t>(cell);
      int64_t other = 0;
      while (other < cells_ && (other == cell || !is_near(cell, other, to))) ++other;
      at_border[i] = other < cells_;
    };
    const auto report = [&](int64_t done) {
      resources_.report({"cells of rows", done, rows_.size()});
      return true;
    };
    const bool done = for_distances({rows_.data(), static_cast<size_t>(rows_.size())}, put, report);
    if (!done) return false;
    begins_.assign(static_cast<size_t>(cells_ + 1), 0);
    borders_.assign(static_cast<size_t>(cells_), 0);
    for (int64_t i = 0; i < rows_.size(); ++i) {
      ++begins_[static_cast<size_t>(cell_of[i] + 1)];
      borders_[static_cast<size_t>(cell_of[i])] += at_border[i];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<int64_t> border_at(begins_.begin(), begins_.end() - 1);
    std::vector<int64_t> inside_at = border_at;
    for (int64_t cell = 0; cell < cells_; ++cell) inside_at[static_cast<size_t>(cell)] += borders_[static_cast<size_t>(cell)];
    HostArray<uint32_t> ordered(rows_.size(), "rows by cells", quiet_);
    for (int64_t i = 0; i < rows_.size(); ++i) {
      ordered[(at_border[i] != 0 ? border_at : inside_at)[static_cast<size_t>(cell_of[i])]++] = rows_[i];
    }
    rows_ = std::move(ordered);
    return true;
  }

  std::span<const uint32_t> rows_of(int64_t cell) const {
    return {rows_.begin() + begins_[static_cast<size_t>(cell)], rows_.begin() + begins_[static_cast<size_t>(cell + 1)]};
  }
  std::span<const uint32_t> border_of(int64_t cell) const {
    return rows_of(cell).first(static_cast<size_t>(borders_[static_cast<size_t>(cell)]));
  }

  double work_within() const {
    double work = 0;
    for (int64_t cell = 0; cell < cells_; ++cell) {
      const auto rows = static_cast<double>(rows_of(cell).size());
      work += rows * rows;
    }
    return work;
  }

  // The first row of the set that all these are in, or -1.
  int64_t common_set(std::span<const uint32_t> rows) const {
    if (rows.empty()) return -1;
    const uint32_t first = sets_.find(rows.front());
    const auto is_there = [&](uint32_t row) { return sets_.find(row) == first; };
    return std::all_of(rows.begin(), rows.end(), is_there) ? static_cast<int64_t>(first) : -1;
  }

  // Joins each of these rows to those of the base that are near. Rows that are in the set of all of the base already
  // are left out, which is looked up again before each block.
  void search(std::span<const uint32_t> queries, std::span<const uint32_t> base) const {
    if (queries.empty() || base.empty()) return;
    MatrixBuffer base_room = room_for(std::ssize(base));
    const MatrixView base_rows = gathered(base, base_room);
    const int64_t most = std::min(std::ssize(queries), std::max(kLeastQueries, kFoundPairs / std::ssize(base)));
    MatrixBuffer query_room = room_for(most);
    std::vector<uint32_t> block;
    for (size_t next = 0; next < queries.size();) {
      const int64_t whole = common_set(base);
      block.clear();
      for (; next < queries.size() && std::ssize(block) < most; ++next) {
        if (whole < 0 || sets_.find(queries[next]) != whole) block.push_back(queries[next]);
      }
      if (block.empty()) break;
      const RangeNeighbors found =
          range_search(gathered(block, query_room), base_rows,
                       {.radius = wanted_.radius, .metric = wanted_.metric, .check_finite = false}, quiet_);
      const RangeView view = found.view();
      for (size_t i = 0; i < block.size(); ++i) {
        for (int64_t n = view.offsets[i]; n < view.offsets[i + 1]; ++n) {
          sets_.join(block[i], base[static_cast<size_t>(view.ids[n])]);
        }
      }
      resources_.check_cancelled();
    }
  }

  void join_within() const {
    for (int64_t cell = 0; cell < cells_; ++cell) {
      search(rows_of(cell), rows_of(cell));
      resources_.report({"within cells", cell + 1, cells_});
    }
  }

  // One row of each cell, so that cells of one dense place are one set before their rows are compared.
  void join_firsts() const {
    std::vector<uint32_t> firsts;
    for (int64_t cell = 0; cell < cells_; ++cell) {
      if (!rows_of(cell).empty()) firsts.push_back(rows_of(cell).front());
    }
    search(firsts, firsts);
  }

  // Rows at borders against those at the borders of cells that they are near to; of two cells the rows of the later ask.
  bool join_across() {
    HostArray<uint32_t> rows(std::accumulate(borders_.begin(), borders_.end(), int64_t{0}), "rows at borders", quiet_);
    HostArray<int32_t> cell_of(rows.size(), "their cells", quiet_);
    int64_t at = 0;
    for (int64_t cell = 0; cell < cells_; ++cell) {
      for (const uint32_t row : border_of(cell)) {
        rows[at] = row;
        cell_of[at++] = static_cast<int32_t>(cell);
      }
    }
    const int64_t of_block = kRowsAtATime * cells_;
    HostArray<Asked> asked(kAskedOfRow * rows.size() + of_block, "rows and cells that they are near to", quiet_);
    std::atomic<int64_t> count = 0;
    std::vector<int64_t> whole = common_sets();
    double work = 0;
    bool gave_up = false;
    const auto ask = [&](int64_t i, const float* to) {
      const int64_t own = cell_of[i];
      for (int64_t cell = 0; cell < own; ++cell) {
        if (borders_[static_cast<size_t>(cell)] == 0 || !is_near(own, cell, to)) continue;
        const int64_t set = whole[static_cast<size_t>(cell)];
        if (set >= 0 && sets_.find(rows[i]) == set) continue;
        asked[count.fetch_add(1, std::memory_order_relaxed)] = {static_cast<uint32_t>(cell), rows[i]};
      }
    };
    const auto answer = [&](int64_t done) {
      if (done < rows.size() && count + of_block <= asked.size()) return true;
      work += work_of({asked.data(), static_cast<size_t>(count)});
      // Rows ask the cells before their own, so that the first half of the rows asks a quarter of all.
      const double part = static_cast<double>(done) / static_cast<double>(rows.size());
      gave_up = work / (part * part) > most_work();
      if (gave_up) return false;
      search_cells_asked({asked.data(), static_cast<size_t>(count)});
      whole = common_sets();
      count = 0;
      resources_.report({"between cells", done, rows.size()});
      return true;
    };
    return for_distances({rows.data(), static_cast<size_t>(rows.size())}, ask, answer) && !gave_up;
  }

  struct Asked {
    uint32_t cell;
    uint32_t row;
  };

  std::vector<int64_t> common_sets() const {
    std::vector<int64_t> sets(static_cast<size_t>(cells_));
    for (int64_t cell = 0; cell < cells_; ++cell) sets[static_cast<size_t>(cell)] = common_set(border_of(cell));
    return sets;
  }

  double work_of(std::span<const Asked> asked) const {
    double work = 0;
    for (const Asked& one : asked) work += static_cast<double>(borders_[one.cell]);
    return work;
  }

  void search_cells_asked(std::span<Asked> asked) const {
    HostArray<uint32_t> rows(std::ssize(asked), "rows near to cells", quiet_);
    std::vector<int64_t> begins(static_cast<size_t>(cells_ + 1), 0);
    for (const Asked& one : asked) ++begins[one.cell + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<int64_t> at(begins.begin(), begins.end() - 1);
    for (const Asked& one : asked) rows[at[one.cell]++] = one.row;
    for (int64_t cell = 0; cell < cells_; ++cell) {
      const std::span<const uint32_t> near(rows.begin() + begins[static_cast<size_t>(cell)],
                                           rows.begin() + begins[static_cast<size_t>(cell + 1)]);
      if (std::ssize(near) > kTrial) {  // a few first: where they join all of the base, most others are left out
        std::vector<uint32_t> some;
        for (size_t i = 0; i < near.size(); i += near.size() / kLeastQueries) some.push_back(near[i]);
        search(some, border_of(cell));
      }
      search(near, border_of(cell));
    }
  }

  const MatrixView& x_;
  const NearPairs& wanted_;
  const CellSpace space_;
  const RowSets& sets_;
  const Resources& resources_;
  const Resources quiet_;
  HostArray<uint32_t> rows_;  // of equal ones the first; by cells, and in each those at a border first
  const int64_t cells_;
  MatrixBuffer centres_;
  MatrixBuffer between_;
  std::vector<int64_t> begins_;   // of the cells in rows_, and the end
  std::vector<int64_t> borders_;  // how many rows of each are at a border
};

}  // namespace

bool join_in_cells(const MatrixView& x, const NearPairs& wanted, const RowSets& sets, const Resources& resources) {
  if (!CellSpace::has(wanted.metric) || x.cols() < 1) return false;
  if (wanted.metric == Metric::cosine && wanted.radius > kWidestAngle) return false;
  try {
    return CellJoin(x, wanted, sets, resources).run();
  } catch (const OutOfMemory&) {
    return false;
  }
}

}  // namespace kith
