// Checks of a graph's rows: what every graph from outside is asked before it is read.
//
// An id is a row of the graph, not the row itself, and not there twice; -1, for nobody, stands at the end alone.
// Distances are numbers, nearest first. Cost: a sort of each row's ids, in parallel.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace kith {

// Throws InvalidArgument that names the first wrong row. The graph lies anywhere; on a device it is checked there.
void check_graph(const KnnGraph& graph, const Resources& resources);
// Whether a row breaks no rule, of a graph on the host; `scratch` is memory for a copy of its ids. For who goes over
// all rows anyway.
bool row_is_sound(const KnnGraph& graph, int64_t row, std::vector<int64_t>& scratch);

// Throws InvalidArgument that names the first row with fewer than k neighbours, which `user` wants all.
void check_full(const KnnGraph& graph, std::string_view user);

// Throws Unsupported where rows have more than 31 bits.
void check_row_count(int64_t rows);

// Throws InvalidArgument, saying what `use` wants, where the metric is no distance.
void check_distance(Metric metric, std::string_view use);

// The same rules on a GPU, where the graph lies: a warp for each row, one read of it.
// Rows of so many neighbours fit the memory of a warp.
inline constexpr int64_t kMostCheckedThere = 8192;

// The first row that breaks a rule, or rows(). The graph lies in a device's memory, has up to INT32_MAX rows and up to
// kMostCheckedThere neighbours. Works on the resources' stream, and waits.
int64_t first_wrong_row_cuda(const KnnGraph& graph, const Resources& resources);

}  // namespace kith
