// What tests of indexes share: searches that must be the same bytes, and the definition of a search of all lists.
#pragma once

#include <kith/error.hpp>
#include <kith/index.hpp>

#include "reference/taken_params.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace kith {

inline constexpr int64_t kAll = 1 << 20;  // probes

inline Resources on_cpu(int64_t limit = kNoLimit, int threads = 2) {
  ResourceOptions options;
  options.host_memory_limit = limit;
  options.device = Device::cpu();
  options.threads = threads;
  return Resources(options);
}

inline VectorView<const int64_t> view(const std::vector<int64_t>& ids) {
  return {ids.data(), static_cast<int64_t>(ids.size()), {}};
}

inline std::vector<float> reconstructed(const Index& index, const std::vector<int64_t>& ids) {
  std::vector<float> out(ids.size() * static_cast<size_t>(index.dimension()));
  index.reconstruct(view(ids), MutableMatrixView(out.data(), static_cast<int64_t>(ids.size()), index.dimension()),
                    on_cpu());
  return out;
}

// What an error says, or that there was none.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline void expect_same(const Neighbors& a, const Neighbors& b) {
  ASSERT_EQ(a.queries(), b.queries());
  ASSERT_EQ(a.k(), b.k());
  const auto count = static_cast<size_t>(a.queries() * a.k());
  EXPECT_EQ(std::memcmp(a.ids(), b.ids(), count * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(a.distances(), b.distances(), count * sizeof(float)), 0);
}

// The index's search of all lists is knn over these ids, in this order.
inline void expect_exact(const Index& index, const MatrixView& queries, const std::vector<int64_t>& ids) {
  const std::vector<float> vectors = reconstructed(index, ids);
  const MatrixView base(vectors.data(), static_cast<int64_t>(ids.size()), index.dimension());
  const Neighbors found = index.search(queries, taken_by(index, {.k = 13, .probes = kAll}), on_cpu());
  const Neighbors rows = knn(queries, base, {.k = 13, .metric = index.params().metric}, on_cpu());
  for (int64_t i = 0; i < found.queries() * 13; ++i) {
    const int64_t row = rows.ids()[i];
    ASSERT_EQ(found.ids()[i], row < 0 ? -1 : ids[static_cast<size_t>(row)]) << index.factory() << " at " << i;
    ASSERT_EQ(found.distances()[i], rows.distances()[i]) << index.factory() << " at " << i;
  }
}

inline std::vector<int64_t> numbers(int64_t count, int64_t first = 0) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

}  // namespace kith
