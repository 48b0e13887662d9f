// Models and searches of inverted files for tests, and their comparison with the reference, bit by bit.
#pragma once

#include "core/metric_unit.hpp"
#include "exact/exact_check.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/segment/list_segment.hpp"
#include "reference/ivf.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace kith {

struct IvfCase {
  std::string name;
  CodeRecipe code;
  bool residual = false;
};

inline std::ostream& operator<<(std::ostream& out, const IvfCase& one) { return out << one.name; }

// Codes for vectors whose columns 4 divides.
inline std::vector<IvfCase> all_ivf_cases() {
  const auto stored = [](DType dtype) { return CodeRecipe{kStoredCode, dtype, 8, 0}; };
  const auto scalar = [](int bits) { return CodeRecipe{kScalarCode, DType::f32, bits, 0}; };
  const auto product = [](int64_t parts, int bits) { return CodeRecipe{kProductCode, DType::f32, bits, parts}; };
  return {{"Flat", stored(DType::f32), false},
          {"Flat f16", stored(DType::f16), false},
          {"SQ8", scalar(8), true},
          {"SQ8 of vectors", scalar(8), false},
          {"SQ6", scalar(6), true},
          {"SQ4", scalar(4), false},
          {"PQ4x4", product(4, 4), true},
          {"PQ4x5 of vectors", product(4, 5), false},
          {"PQ2x6", product(2, 6), true},
          {"PQ4x8", product(4, 8), true}};
}

inline const IvfCase kProduct = all_ivf_cases().back();

inline void expect_same_segment(const ListSegment& a, const ListSegment& b) {
  ASSERT_EQ(a.lists(), b.lists());
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.offsets(), b.offsets(), static_cast<size_t>(a.lists() + 1) * 8), 0);
  EXPECT_EQ(std::memcmp(a.rows(), b.rows(), static_cast<size_t>(a.size()) * 4), 0);
  EXPECT_EQ(std::memcmp(a.codes(), b.codes(), static_cast<size_t>(a.size() * a.code_bytes())), 0);
}

inline std::shared_ptr<const IvfModel> train(const IvfCase& one, Metric metric, const reference::Matrix<float>& rows,
                                             int64_t lists) {
  IvfSpec spec;
  spec.lists = lists;
  spec.code = one.code;
  spec.residual = one.residual;
  spec.iterations = 4;
  ViewSource source(rows.view());
  return train_ivf(spec, metric, source, 7, on_cpu());
}

// Rows and distances as the reference has them.
inline std::vector<uint64_t> packed(Metric metric, const int64_t* ids, const float* distances, int64_t count) {
  std::vector<uint64_t> all;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t key = ordered_key(key_of(metric, distances[i]));
    all.push_back(ids[i] < 0 ? kPadding : pack_neighbor(key, static_cast<uint32_t>(ids[i])));
  }
  return all;
}

inline std::vector<uint64_t> search(const IvfModel& model, const std::vector<Segment>& segments,
                                    const reference::Matrix<float>& queries, const IvfSearch& params,
                                    const Resources& resources = on_cpu()) {
  const auto size = static_cast<size_t>(queries.rows * params.k);
  std::vector<int64_t> ids(size);
  std::vector<float> distances(size);
  const NeighborsView out{ids.data(), distances.data(), queries.rows, params.k, MemorySpace::host()};
  search_ivf(model, segments, queries.view(), params, out, resources);
  return packed(model.metric, ids.data(), distances.data(), queries.rows * params.k);
}

// The rows as so many segments.
inline std::vector<Segment> segments_of(const IvfModel& model, const reference::Matrix<float>& rows, int64_t parts) {
  std::vector<Segment> segments;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t first = rows.rows * p / parts;
    segments.push_back(
        build_segment(model, rows.view().slice(first, rows.rows * (p + 1) / parts - first), first, on_cpu()));
  }
  return segments;
}

inline std::vector<uint64_t> bits_of(const std::vector<bool>& kept) {
  std::vector<uint64_t> bits((kept.size() + 63) / 64, 0);
  for (size_t i = 0; i < kept.size(); ++i) bits[i / 64] |= uint64_t{kept[i]} << (i % 64);
  return bits;
}

inline void expect_neighbors(const std::vector<uint64_t>& found, const std::vector<uint64_t>& truth, int64_t k) {
  ASSERT_EQ(found.size(), truth.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], truth[i]) << "query " << i / static_cast<size_t>(k) << " neighbour "
                                  << i % static_cast<size_t>(k) << ": row " << row_of(found[i]) << " at "
                                  << key_of_ordered(ordered_of(found[i])) << " for row " << row_of(truth[i]) << " at "
                                  << key_of_ordered(ordered_of(truth[i]));
  }
}

}  // namespace kith
