// Checks of a graph's rows, done for every graph from outside before it is used.
//
// An id is a row of the graph other than the row itself, and occurs once; -1, for no neighbour, only at the end.
// Distances are not NaN and ascend. Cost: a sort of each row's ids, in parallel.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace kith {

// Throws InvalidArgument, naming the first invalid row. A graph on a device is checked there.
void check_graph(const KnnGraph& graph, const Resources& resources);
// The same of a graph in host memory; `checked` is told which rows have been looked at, in order.
void check_graph(const KnnGraph& graph, const Resources& resources,
                 const std::function<void(int64_t first, int64_t end)>& checked);
// Whether a row of a graph in host memory is valid; `scratch` is memory for a copy of its ids. For callers that visit
// all rows anyway.
bool row_is_sound(const KnnGraph& graph, int64_t row, std::vector<int64_t>& scratch);

// Throws InvalidArgument, naming the first row with fewer than the k neighbours that `user` needs.
void check_full(const KnnGraph& graph, std::string_view user);

// Throws Unsupported if row numbers need more than 31 bits.
void check_row_count(int64_t rows);

// Throws InvalidArgument, naming `use`, if the metric is not a distance.
void check_distance(Metric metric, std::string_view use);

// The same checks on the GPU that holds the graph: a warp for each row, which is read once.
// The most neighbours of a row that fit the memory of a warp.
inline constexpr int64_t kMostCheckedThere = 8192;

// The first invalid row, or rows(). The graph must be in device memory, with up to INT32_MAX rows and
// kMostCheckedThere neighbours. Runs on the resources' stream, and waits.
int64_t first_wrong_row_cuda(const KnnGraph& graph, const Resources& resources);

}  // namespace kith
