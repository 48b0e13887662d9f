// Kinds of data by name, as hard for a k-NN graph as what users bring: those of bench/data_kinds.py, with fewer
// columns.
#pragma once

#include <kith/metric.hpp>

#include "reference/brute_force.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kith::reference {

struct DataKind {
  std::string_view name;
  Metric metric = Metric::l2;
};
const std::vector<DataKind>& data_kinds();

// Seeded: the same rows every time.
Matrix<float> make_kind(std::string_view name, int64_t rows, uint64_t seed);

}  // namespace kith::reference
