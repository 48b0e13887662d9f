// Compares exact searches with the reference, bit by bit.
#pragma once

#include <kith/index.hpp>
#include <kith/knn.hpp>
#include <kith/range_search.hpp>

#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace kith {

inline Resources on_cpu(int threads = 2, int64_t limit = kNoLimit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  options.host_memory_limit = limit;
  return Resources(options);
}

inline void expect_same(const Neighbors& found, const reference::Result& truth) {
  for (int64_t q = 0; q < found.queries(); ++q) {
    for (int64_t i = 0; i < found.k(); ++i) {
      const auto at = static_cast<size_t>(q * found.k() + i);
      ASSERT_EQ(found.ids(q)[i], truth.ids[at]) << "query " << q << " neighbour " << i;
      ASSERT_EQ(std::memcmp(&found.distances(q)[i], &truth.distances[at], sizeof(float)), 0)
          << "query " << q << " neighbour " << i << ": " << found.distances(q)[i] << " for " << truth.distances[at];
    }
  }
}

// By an index too where that packs its rows, which a search of arrays does for more queries only.
template <typename Q, typename X>
void expect_same_by_index(const reference::Matrix<Q>& queries, const reference::Matrix<X>& base,
                          const KnnParams& params, const Resources& resources, const reference::Result& truth) {
  if (queries.rows < 6 || base.rows == 0) return;
  SCOPED_TRACE("an index");
  Index index("Flat", {params.metric, false});  // rows that a filter leaves out may be bad
  index.add(base.view(), Ownership::borrow, resources);
  expect_same(index.search(queries.view(), {params.k, params.filter}, resources), truth);
}

template <typename Q, typename X>
void check(const reference::Matrix<Q>& queries, const reference::Matrix<X>& base, const KnnParams& params,
           const Resources& resources = on_cpu()) {
  const reference::Result truth = reference::knn(queries, base, params);
  expect_same(knn(queries.view(), base.view(), params, resources), truth);
  expect_same_by_index(queries, base, params, resources, truth);
}

// The same with every instruction set of this machine (under a sanitizer with one, in turn). The reference uses none of
// them and is asked once.
template <typename Q, typename X>
void check_with_every_target(const reference::Matrix<Q>& queries, const reference::Matrix<X>& base,
                             const KnnParams& params) {
  const reference::Result truth = reference::knn(queries, base, params);
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    expect_same(knn(queries.view(), base.view(), params, on_cpu()), truth);
    expect_same_by_index(queries, base, params, on_cpu(), truth);
  }
}

}  // namespace kith
