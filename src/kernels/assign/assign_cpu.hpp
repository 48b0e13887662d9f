// The nearest of some centres for every row, exactly, on the CPU: the first by (canonical key, centre). Few centres are
// a table (centre_table_cpu.hpp), more are packed; the labels and keys are the same.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/assign/centre_table_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace kith {

inline constexpr int32_t kNoLabel = -1;

// The packing of rows and centres: rounded to bytes if the CPU multiplies these faster. It only affects which centres
// become candidates, never the result.
PanelFormat centre_format(int64_t cols, const CpuExtensions& cpu);

// The nearest of many centres.
//
// A block of rows is packed like queries and multiplied by all packed centres. The product's values never leave the
// registers except where one is low enough, within its error bound, to be the nearest (kernels/panels). Where these are
// several, sums of squared differences in f32, which are within narrower bounds, leave one in most cases; the canonical
// distance decides among the others. A row that comes with a guess, its centre of the iteration before, starts from
// that centre's distance, so that little else passes.
//
// Cost: 2 rows x centres x columns operations, f32 or bytes, some distances in f32 a row and few canonical ones.
class NearestCentre {
 public:
  // For one thread.
  NearestCentre(KeyKind kind, PanelFormat format, int64_t cols, const Resources& resources);

  // Rows that are best given together.
  static int64_t block_rows(PanelFormat format, int64_t cols);

  // Assigns any number of rows. `packed` holds the f32 `centres`. `labels` has guesses or kNoLabel and receives the
  // centres; `keys` receives canonical keys, or is null.
  void assign(const PackedRows& packed, const MatrixView& centres, const MatrixView& rows, int32_t* labels,
              float* keys);

  // Rows assigned and f32 distances computed since the last call.
  struct Work {
    int64_t rows = 0;
    int64_t distances = 0;
  };
  Work take_work() { return std::exchange(work_, {}); }

 private:
  struct Candidate {
    float least;  // lower bound of its value
    uint32_t centre;
    bool refined;  // bounded by a sum of differences
  };
  class Block;

  // For a block of rows.
  int64_t block_;
  PackedQueries packed_;
  HostArray<std::byte> scratch_;     // for packing
  HostArray<float> rows_;            // as f32, unless they are f32 already
  HostArray<float> limits_;          // values above limit plus bound are excluded; whole panels
  HostArray<uint64_t> best_;         // the nearest scored so far, packed neighbours
  HostArray<Candidate> candidates_;  // kCandidates for each row
  HostArray<int32_t> candidate_count_;
  Work work_;
};

// Where packed bytes leave several centres for most rows (rows without clusters, whose distances differ little), a
// table of not too many centres takes less time than those distances: from what a pass took, the next ones are done one
// way or the other.
class CentreAssigner {
 public:
  static bool has_few(int64_t centres) { return centres <= kMostFewCentres; }
  // Whether a table suits: few centres, and small ones if packed bytes are faster than floats that do not fit the L1
  // cache.
  static bool has_table(int64_t centres, int64_t cols, PanelFormat format) {
    return has_few(centres) && (format != PanelFormat::rounded || centres * cols <= kMostTableValues);
  }

  // For up to `capacity` centres, which are packed in `format` if they are. By squared L2, with an origin near the mean
  // of the rows, or by inner products; by L2 where they are packed.
  CentreAssigner(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity,
                 const Resources& resources);

  // f32; they must not change until the next call.
  void set(const MatrixView& centres, ProgressMeter& meter, const Resources& resources);

  // Rows that are best given together.
  int64_t block_rows() const { return block_; }
  // For the thread `slot`. `labels` holds guesses or kNoLabel, and the centres afterwards; `keys` gets the canonical
  // keys, null where only labels are wanted. False where few centres have shown that values may not be finite.
  bool assign(const MatrixView& rows, int32_t* labels, float* keys, int slot);

 private:
  static constexpr int64_t kMostTableValues = 1 << 14;

  // Chooses the form of the next pass.
  void choose_form();

  int64_t block_;
  MatrixView centres_;
  // Either few centres,
  std::optional<CentreTable> few_;
  int64_t scratch_floats_ = 0;
  HostArray<float> scratch_;  // of all threads
  // or many, or both forms of the same.
  std::optional<PackedRows> packed_;
  std::deque<NearestCentre> nearest_;  // one for each thread
  bool uses_table_ = false;
  int64_t passes_left_ = 0;  // with the table, where there are both
  int64_t wait_ = 24;        // such passes, twice as many each time
};

}  // namespace kith
