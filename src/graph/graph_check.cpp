#include "graph/graph_check.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 1024;
constexpr int64_t kNobody = -1;

bool is_farther(float a, float b, Metric metric) { return larger_is_nearer(metric) ? a < b : a > b; }

void check_id(const KnnGraph& graph, int64_t row, int64_t j) {
  const int64_t* const ids = graph.ids(row);
  const int64_t id = ids[j];
  if (id < kNobody || id >= graph.rows()) {
    throw InvalidArgument(fmt::format(
        "row {} has the neighbour {} in column {}; the graph has {} rows, so that ids are 0 to {}, or -1 for nobody",
        row, id, j, graph.rows(), graph.rows() - 1));
  }
  if (id == row) {
    throw InvalidArgument(fmt::format(
        "row {} is its own neighbour in column {}; a graph holds other rows alone: leave it out", row, j));
  }
  if (j > 0 && id != kNobody && ids[j - 1] == kNobody) {
    throw InvalidArgument(
        fmt::format("row {} has the neighbour {} in column {}, behind a -1; -1 stands at the end", row, id, j));
  }
  if (id != kNobody && std::find(ids, ids + j, id) != ids + j) {
    throw InvalidArgument(fmt::format("row {} has the neighbour {} twice, the second time in column {}", row, id, j));
  }
}

void check_distance_at(const KnnGraph& graph, int64_t row, int64_t j) {
  const float* const distances = graph.distances(row);
  if (graph.ids(row)[j] == kNobody) return;
  if (std::isnan(distances[j])) {
    throw InvalidArgument(fmt::format("row {} has the distance nan in column {}; distances are numbers", row, j));
  }
  if (j > 0 && is_farther(distances[j - 1], distances[j], graph.metric())) {
    throw InvalidArgument(fmt::format(
        "row {} has the distance {} in column {} behind {}; the nearest comes first ({}): sort each row", row,
        distances[j], j, distances[j - 1], name_of(graph.metric())));
  }
}

[[noreturn]] void throw_wrong_row(const KnnGraph& graph, int64_t row) {
  for (int64_t j = 0; j < graph.k(); ++j) check_id(graph, row, j);
  for (int64_t j = 0; j < graph.k(); ++j) check_distance_at(graph, row, j);
  throw InvalidState("a graph's row was taken for wrong");
}

}  // namespace

bool row_is_sound(const KnnGraph& graph, int64_t row, std::vector<int64_t>& sorted) {
  const int64_t* const ids = graph.ids(row);
  const float* const distances = graph.distances(row);
  const int64_t* const end = std::find(ids, ids + graph.k(), kNobody);
  if (std::any_of(end, ids + graph.k(), [](int64_t id) { return id != kNobody; })) return false;
  if (std::any_of(ids, end, [&](int64_t id) { return id < 0 || id >= graph.rows() || id == row; })) return false;
  for (int64_t j = 0; j < end - ids; ++j) {
    if (std::isnan(distances[j]) || (j > 0 && is_farther(distances[j - 1], distances[j], graph.metric()))) return false;
  }
  sorted.assign(ids, end);
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

void check_graph(const KnnGraph& graph, const Resources& resources) {
  const int64_t rows = graph.rows();
  std::atomic<int64_t> first_wrong{rows};
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("check", rows, quiet);
  parallel_for(divide_up(rows, kRowsPerTask), meter, quiet, [&](int64_t task, int) {
    std::vector<int64_t> sorted;
    const int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      if (row_is_sound(graph, row, sorted)) continue;
      int64_t before = first_wrong.load();
      while (row < before && !first_wrong.compare_exchange_weak(before, row)) {
      }
      return;
    }
  });
  const int64_t wrong = first_wrong.load();
  if (wrong < rows) throw_wrong_row(graph, wrong);
}

void check_full(const KnnGraph& graph, std::string_view user) {
  for (int64_t row = 0; row < graph.rows(); ++row) {
    if (graph.k() > 0 && graph.ids(row)[graph.k() - 1] >= 0) continue;
    throw InvalidArgument(fmt::format("row {} has fewer than k = {} neighbours; {} wants a full graph: lower k", row,
                                      graph.k(), user));
  }
}

void check_row_count(int64_t rows) {
  if (rows <= INT32_MAX) return;
  throw Unsupported(fmt::format("a graph of {} rows; up to {} can be walked on at a time", rows, INT32_MAX));
}

void check_distance(Metric metric, std::string_view use) {
  if (!larger_is_nearer(metric)) return;
  throw InvalidArgument(fmt::format("{} is no distance, and {}; build the graph with cosine or l2", name_of(metric), use));
}

}  // namespace kith
