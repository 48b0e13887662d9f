// Searches many failed queries among fewer rows, where error bounds are tight enough for products to decide.
//
// Bounds that hold for all rows of a base grow with its extent. If rows form tight clusters, a line, or have norms over
// many decades, such bounds are too wide: every row of a query's cluster seems as near as its nearest. So some failed
// queries become leaders, others follow a near leader (kernels/matrix/vicinity_bounds.hpp), and the rows in a leader's
// vicinity, which one product marks, become a base of their own. Such a base has a centre and a scale, and so bounds,
// of its own.
//
// Rows that equal many others are left out in the same way (kernels/rerank/equal_rows_cuda.hpp).
#pragma once

#include "cuda/device_buffer.hpp"
#include "exact/product_step_cuda.hpp"
#include "kernels/rerank/choose_leader_cuda.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace kith {

// Queries, the subset of a base in which they are searched, and where their k neighbours go.
struct Vicinity {
  DeviceRowsView queries;
  ProductBase rows;
  uint64_t* found = nullptr;
  bool narrower = true;  // products tell its rows better apart than those of all
};

struct VicinityLayout : WorkspaceLayout {
  VicinityLayout(const SearchTask& task, int64_t failed, int64_t rows);

  int64_t tile = 0;  // queries that are compared with the leaders at a time
  Slot<uint32_t> leaders;
  Slot<float> most;  // the key that belongs to a radius
  Slot<double> radii;
  Slot<uint32_t> followers;
  Slot<uint32_t> totals;  // marked rows of each leader
  Slot<uint32_t> parts;   // the same by parts
  Slot<uint32_t> marks;
  Slot<float> keys;         // leaders x tile
  Slot<double> tile_norms;  // of queries
  Slot<uint32_t> chosen[2];
  Slot<uint32_t> order[2];
  Slot<std::byte> sort;
  Slot<std::byte> values;  // of the queries in that order
  Slot<double> value_norms;
  Slot<uint64_t> found;
  // A vicinity's rows: their numbers, where they lie if that is something else, and their places in the base.
  Slot<uint32_t> numbers;
  Slot<uint32_t> stored;
  Slot<uint32_t> places;
  Slot<double> norms;
  Slot<std::byte> equal;
};

class Vicinities : public ProductStep {
 public:
  static constexpr int64_t kHostBytes =
      kMostLeaders * kMostLeaders * int64_t{sizeof(float)};  // taken while it searches

  // Allocates memory for `failed` queries and `base_rows`. The arguments must outlive it.
  Vicinities(const SearchRows& rows, int64_t failed, int64_t base_rows, const Resources& resources);

  // Waits.
  bool has_far_rows(const ProductBase& base) const { return read(&base.operands.bounds->has_far) != 0; }

  // The rows that have fewer than k equal ones before them, if these are much fewer than all. Waits.
  std::optional<ProductBase> unequal_rows(const ProductBase& base) const;

  // Searches a vicinity and enqueues the writing of its results; false if it cannot.
  using Use = std::function<bool(const Vicinity&)>;

  // Searches all `count` failed queries in these rows, as one vicinity; writes to `neighbors`.
  bool search_all(int64_t count, const DeviceRowsView& queries, const ProductBase& rows, uint64_t* neighbors,
                  const Use& use) const;

  // Searches some of the `count` failed queries and returns how many remain on their list. `least`: the followers that
  // a leader must have. Waits.
  int64_t search(int64_t count, int64_t least, const DeviceRowsView& queries, const ProductBase& base,
                 uint64_t* neighbors, const Use& use) const;

 private:
  template <typename T>
  T* in(const Slot<T>& slot) const {
    return slot.in(memory_.data());
  }
  struct Leaders;
  Leaders choose_leaders(int64_t count, const DeviceRowsView& queries, const ProductBase& base) const;
  double radius_of(const Leaders& leaders, int64_t leader, double reach, const float* keys) const;
  void mark_rows(const Leaders& leaders, const ProductBase& base) const;
  const uint32_t* order_followers(const Leaders& leaders, int64_t count, const DeviceRowsView& queries) const;
  DeviceRowsView gather_in(const uint32_t* order, int64_t count, const DeviceRowsView& queries) const;
  ProductBase listed(const ProductBase& base, int64_t set, int64_t count) const;

  const Resources resources_;
  VicinityLayout own_;
  DeviceBuffer memory_;
};

}  // namespace kith
