#include "graph/handle/graph_check.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "cuda/device_memory.hpp"
#include "graph/handle/graph_output.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kCheckedRowsPerTask = 1024;
constexpr int64_t kRowsTold = 65536;  // at a time
constexpr int64_t kNobody = -1;

bool is_farther(float a, float b, Metric metric) { return larger_is_nearer(metric) ? a < b : a > b; }

// One row of a graph, on the host.
struct GivenRow {
  const KnnGraph& graph;
  int64_t number;
  const int64_t* ids;
  const float* distances;
};

void check_id(const GivenRow& row, int64_t j) {
  const int64_t rows = row.graph.rows();
  const int64_t id = row.ids[j];
  if (id < kNobody || id >= rows) {
    throw InvalidArgument(fmt::format(
        "row {} has the neighbour {} in column {}; the graph has {} rows, so that ids are 0 to {}, or -1 for nobody",
        row.number, id, j, rows, rows - 1));
  }
  if (id == row.number) {
    throw InvalidArgument(fmt::format(
        "row {} is its own neighbour in column {}; a graph holds other rows alone: leave it out", row.number, j));
  }
  if (j > 0 && id != kNobody && row.ids[j - 1] == kNobody) {
    throw InvalidArgument(
        fmt::format("row {} has the neighbour {} in column {}, behind a -1; -1 stands at the end", row.number, id, j));
  }
  if (id != kNobody && std::find(row.ids, row.ids + j, id) != row.ids + j) {
    throw InvalidArgument(
        fmt::format("row {} has the neighbour {} twice, the second time in column {}", row.number, id, j));
  }
}

void check_distance_at(const GivenRow& row, int64_t j) {
  if (row.ids[j] == kNobody) return;
  const float distance = row.distances[j];
  if (std::isnan(distance)) {
    throw InvalidArgument(
        fmt::format("row {} has the distance nan in column {}; distances are numbers", row.number, j));
  }
  const Metric metric = row.graph.metric();
  if (j > 0 && is_farther(row.distances[j - 1], distance, metric)) {
    throw InvalidArgument(
        fmt::format("row {} has the distance {} in column {} behind {}; the nearest comes first ({}): sort each row",
                    row.number, distance, j, row.distances[j - 1], name_of(metric)));
  }
}

[[noreturn]] void throw_wrong_row(const GivenRow& row) {
  for (int64_t j = 0; j < row.graph.k(); ++j) check_id(row, j);
  for (int64_t j = 0; j < row.graph.k(); ++j) check_distance_at(row, j);
  throw InvalidState("a graph's row was taken for wrong");
}

// In the memory of a device.
void check_graph_there(const KnnGraph& graph, const Resources& resources) {
  if (graph.k() > kMostCheckedThere || graph.rows() > INT32_MAX) {
    return check_graph(graph_in(MemorySpace::host(), graph, resources), resources);
  }
  const int64_t wrong = first_wrong_row_cuda(graph, resources);
  if (wrong == graph.rows()) return;
  std::vector<int64_t> ids(static_cast<size_t>(graph.k()));
  std::vector<float> distances(static_cast<size_t>(graph.k()));
  copy_to_host(graph.ids(wrong), array_bytes<int64_t>(graph.k()), graph.space().device, ids.data());
  copy_to_host(graph.distances(wrong), array_bytes<float>(graph.k()), graph.space().device, distances.data());
  throw_wrong_row({graph, wrong, ids.data(), distances.data()});
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
  if (!graph.space().host_readable()) return check_graph_there(graph, resources);
  check_graph(graph, resources, [](int64_t, int64_t) {});
}

void check_graph(const KnnGraph& graph, const Resources& resources,
                 const std::function<void(int64_t first, int64_t end)>& checked) {
  const int64_t rows = graph.rows();
  std::atomic<int64_t> first_wrong{rows};
  const auto look = [&](int64_t first, int64_t end) {
    std::vector<int64_t> sorted;
    for (int64_t row = first; row < end; ++row) {
      if (row_is_sound(graph, row, sorted)) continue;
      int64_t before = first_wrong.load();
      while (row < before && !first_wrong.compare_exchange_weak(before, row)) {
      }
      return;
    }
  };
  const Resources quiet = resources.with_progress({});
  for (int64_t begin = 0; begin < rows; begin += kRowsTold) {
    const int64_t count = std::min(kRowsTold, rows - begin);
    for_row_blocks(
        "check", count, quiet, [&](int64_t first, int64_t end) { look(begin + first, begin + end); },
        kCheckedRowsPerTask);
    checked(begin, begin + count);
  }
  const int64_t wrong = first_wrong.load();
  if (wrong < rows) throw_wrong_row({graph, wrong, graph.ids(wrong), graph.distances(wrong)});
}

void check_full(const KnnGraph& graph, std::string_view user) {
  if (is_counted_only(graph.ids())) return;
  for (int64_t row = 0; row < graph.rows(); ++row) {
    if (graph.k() > 0 && graph.ids(row)[graph.k() - 1] >= 0) continue;
    throw InvalidArgument(
        fmt::format("row {} has fewer than k = {} neighbours; {} wants a full graph: lower k", row, graph.k(), user));
  }
}

void check_row_count(int64_t rows) {
  if (rows <= INT32_MAX) return;
  throw Unsupported(fmt::format("a graph of {} rows; up to {} can be walked on at a time", rows, INT32_MAX));
}

void check_distance(Metric metric, std::string_view use) {
  if (!larger_is_nearer(metric)) return;
  throw InvalidArgument(
      fmt::format("{} is no distance, and {}; build the graph with cosine or l2", name_of(metric), use));
}

}  // namespace kith
