// An index that is searched on a GPU finds what it finds on the CPU, byte for byte.
#pragma once

#include <kith/index.hpp>

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace kith {

// Wherever queries and results lie.
inline void expect_as_on_cpu(const Index& index, const MatrixView& queries, const SearchParams& params,
                             const std::string& what) {
  const Neighbors expected = index.search(queries, params, on_cpu());
  const auto count = static_cast<size_t>(expected.queries() * expected.k());
  const auto same = [&](const int64_t* ids, const float* distances, const char* where) {
    int64_t differ = 0;
    for (size_t i = 0; i < count; ++i) differ += ids[i] != expected.ids()[i] ? 1 : 0;
    EXPECT_EQ(differ, 0) << "ids of " << count << ", " << what << ", " << where;
    EXPECT_EQ(std::memcmp(distances, expected.distances(), count * sizeof(float)), 0) << what << ", " << where;
  };
  const Neighbors found = index.search(queries, params, on_cuda());
  same(found.ids(), found.distances(), "queries on the host");
  const DeviceMatrix there(queries);
  const DeviceResult result(expected.queries(), expected.k());
  index.search(there.view(), result.view, params, on_cuda());
  std::vector<int64_t> ids(count);
  std::vector<float> distances(count);
  result.ids.read(ids.data());
  result.distances.read(distances.data());
  same(ids.data(), distances.data(), "queries and results on the device");
}

}  // namespace kith
