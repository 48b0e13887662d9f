// A batch of queries as the CPU search needs them: widened to f32 for the canonical distances, and packed for one base.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

class QuerySet {
 public:
  // Without a format they are not packed.
  QuerySet(KeyKind kind, int64_t capacity, int64_t cols, std::optional<PanelFormat> format, const Resources& resources);
  // With what packing by so many threads needs.
  static int64_t bytes_for(int64_t queries, int64_t cols, std::optional<PanelFormat> format, int threads);

  // Takes the rows in. Where `check_finite`, one with a NaN or an infinity is InvalidArgument.
  void load(const MatrixView& queries, bool check_finite, int64_t first_query);
  // Packs them against rows with this origin.
  void pack(const std::vector<float>& origin, ProgressMeter& meter, const Resources& resources);

  int64_t size() const { return size_; }
  const float* row(int64_t i) const { return rows_.data() + i * cols_; }
  double squared_norm(int64_t i) const { return norms_[i].squared; }
  CanonicalQuery canonical(int64_t i) const { return {row(i), norms_[i].inverse}; }
  const PackedQueries& packed() const { return packed_; }

 private:
  struct Norms {
    double squared;
    double inverse;
  };

  int64_t cols_;
  int64_t size_ = 0;
  HostArray<float> rows_;
  HostArray<Norms> norms_;
  int64_t scratch_bytes_ = 0;  // of a thread that packs
  PackedQueries packed_;
};

}  // namespace kith
