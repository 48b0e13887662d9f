#include "ivf/search/kept_scan.hpp"

#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "exact/key_bounds.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kBlock = 64;  // vectors at a time
constexpr int64_t kLine = 64;   // bytes

class KeptScan {
 public:
  KeptScan(const ListedVectors& vectors, std::span<const uint32_t> places, const MatrixView& queries,
           const Resources& resources)
      : vectors_(vectors),
        places_(places),
        kind_(key_kind(vectors.model().metric)),
        format_(vectors.model().codec->format()),
        cols_(vectors.model().cols()),
        queries_(queries.rows()),
        count_(static_cast<int64_t>(places.size())),
        resources_(resources),
        asked_(queries_ * cols_, "the queries", resources),
        scanned_(kind_ == KeyKind::cosine ? queries_ * cols_ : 0, "the normalised queries", resources),
        norms_(queries_, "the queries", resources),
        lower_(queries_ * count_ + kPlacesPast, "bounds of kept vectors", resources),
        upper_(queries_ * count_, "bounds of kept vectors", resources),
        left_(count_ + kPlacesPast, "bounds of kept vectors", resources),
        decoded_(resources.threads() * kBlock * cols_, "the kept vectors", resources) {
    for (int64_t q = 0; q < queries_; ++q) {
      float* const query = asked_.data() + q * cols_;
      widen_row(queries, q, query);
      norms_[q] = canonical_squared_norm_cpu(query, cols_);
      if (kind_ != KeyKind::cosine) continue;
      const double inverse = canonical_inverse_norm(norms_[q]);
      for (int64_t c = 0; c < cols_; ++c) {
        scanned_[q * cols_ + c] = static_cast<float>(static_cast<double>(query[c]) * inverse);
      }
    }
  }

  void bound_all() {
    constexpr int64_t kFewValues = 1 << 21;  // below this waking threads takes longer
    const int64_t blocks = divide_up(count_, kBlock);
    if (resources_.threads() == 1 || queries_ * count_ * cols_ <= kFewValues) {
      for (int64_t block = 0; block < blocks; ++block) bound_block(block, 0);
      return;
    }
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("search", blocks, quiet);
    parallel_for(blocks, meter, quiet, [&](int64_t block, int slot) { bound_block(block, slot); });
  }

  void write_nearest(int64_t q, const NeighborsView& out) {
    const int64_t wanted = std::min(out.k, count_);
    const float most = rank_value(upper_.data() + q * count_, count_, wanted);
    std::copy(places_.begin(), places_.end(), left_.begin());
    const int64_t near = keep_up_to(most, lower_.data() + q * count_, left_.data(), count_);
    const HostArray<uint64_t> found(near, "the neighbours found", resources_);
    const CanonicalQuery query{asked_.data() + q * cols_, canonical_inverse_norm(norms_[q])};
    uint32_t numbers[kBlock];
    float keys[kBlock];
    std::iota(numbers, numbers + kBlock, 0u);
    for (int64_t first = 0; first < near; first += kBlock) {
      const int64_t here = std::min(kBlock, near - first);
      vectors_.decode(left_.data() + first, here, decoded_.data());  // replaces places by rows
      canonical_keys_cpu(kind_, query, MatrixView(decoded_.data(), here, cols_), numbers, here, keys);
      for (int64_t i = 0; i < here; ++i) found[first + i] = pack_neighbor(ordered_key(keys[i]), left_[first + i]);
    }
    std::partial_sort(found.begin(), found.begin() + wanted, found.end());
    write_results(ResultExit(vectors_.model().metric), found.data(), wanted, out.ids + q * out.k,
                  out.distances + q * out.k);
  }

 private:
  const float* scanned(int64_t q) const { return (scanned_.size() > 0 ? scanned_ : asked_).data() + q * cols_; }
  bool is_product() const { return kind_ == KeyKind::inner_product || kind_ == KeyKind::cosine; }

  void bound_block(int64_t block, int slot) {
    const int64_t first = block * kBlock;
    const int64_t count = std::min(kBlock, count_ - first);
    float values[kMostKeptScanQueries][kBlock];
    float bound_sums[kBlock] = {};
    if (format_.stores_values() && !vectors_.model().residual) {
      scan_stored(first, count, values, bound_sums);
    } else {
      scan_decoded(first, count, decoded_.data() + slot * kBlock * cols_, values, bound_sums);
    }
    for (int64_t q = 0; q < queries_; ++q) {
      KeyBounds(kind_, cols_, norms_[q])
          .bound(values[q], bound_sums, count, lower_.data() + q * count_ + first, upper_.data() + q * count_ + first);
    }
  }

  // Bound sums of products are of the vector alone, and known after the first query.
  void scan(int64_t q, const MatrixView& rows, float* values, float* bound_sums) const {
    scan_rows_cpu(kind_, scanned(q), rows, values, q > 0 && is_product() ? nullptr : bound_sums);
  }

  // Each vector in place: rows far apart are not covered by hardware prefetching.
  void scan_stored(int64_t first, int64_t count, float (*values)[kBlock], float* bound_sums) const {
    constexpr int64_t kAheadBytes = 4096;
    const int64_t bytes = format_.bytes();
    const int64_t ahead = std::clamp<int64_t>(kAheadBytes / bytes, 1, 16);
    const int64_t fetched = std::min(bytes, kAheadBytes);
    const auto prefetch = [&](int64_t i) {
      const uint8_t* const code = vectors_.code(places_[static_cast<size_t>(i)]);
      for (int64_t at = 0; at < fetched; at += kLine) __builtin_prefetch(code + at);
    };
    if (first == 0) {
      for (int64_t i = 0; i < std::min(ahead, count_); ++i) prefetch(i);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (first + i + ahead < count_) prefetch(first + i + ahead);
      const MatrixView row(vectors_.code(places_[static_cast<size_t>(first + i)]), format_.dtype, {1, cols_, cols_});
      for (int64_t q = 0; q < queries_; ++q) scan(q, row, values[q] + i, bound_sums + i);
    }
  }

  void scan_decoded(int64_t first, int64_t count, float* decoded, float (*values)[kBlock], float* bound_sums) const {
    uint32_t places[kBlock];
    std::copy_n(places_.begin() + first, count, places);
    vectors_.decode(places, count, decoded);
    for (int64_t q = 0; q < queries_; ++q) scan(q, MatrixView(decoded, count, cols_), values[q], bound_sums);
  }

  const ListedVectors& vectors_;
  const std::span<const uint32_t> places_;
  const KeyKind kind_;
  const CodeFormat format_;
  const int64_t cols_;
  const int64_t queries_;
  const int64_t count_;
  const Resources& resources_;
  HostArray<float> asked_;
  HostArray<float> scanned_;  // scaled to length 1 for cosine
  HostArray<double> norms_;   // squared norms
  HostArray<float> lower_;    // bounds of keys, query by query
  HostArray<float> upper_;
  HostArray<uint32_t> left_;  // places of vectors that may be among the nearest
  HostArray<float> decoded_;  // one block per thread
};

}  // namespace

int64_t kept_scan_bytes(const IvfModel& model, int64_t places, int64_t queries, const Resources& resources) {
  return array_bytes<float>(2 * queries * (places + model.cols()) + 4 * places + 2 * kPlacesPast +
                            resources.threads() * kBlock * model.cols());
}

void scan_kept(const ListedVectors& vectors, std::span<const uint32_t> places, const MatrixView& queries,
               const NeighborsView& out, const Resources& resources) {
  KeptScan scan(vectors, places, queries, resources);
  scan.bound_all();
  for (int64_t q = 0; q < queries.rows(); ++q) scan.write_nearest(q, out);
}

}  // namespace kith
