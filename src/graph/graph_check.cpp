#include "graph/graph_check.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 1024;
constexpr int64_t kNobody = -1;

// One row's ids; `sorted` is memory for a copy of them.
bool is_sound(const int64_t* ids, int64_t row, int64_t rows, int64_t k, std::vector<int64_t>& sorted) {
  const int64_t* const end = std::find(ids, ids + k, kNobody);
  if (std::any_of(end, ids + k, [](int64_t id) { return id != kNobody; })) return false;
  if (std::any_of(ids, end, [&](int64_t id) { return id < 0 || id >= rows || id == row; })) return false;
  sorted.assign(ids, end);
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

[[noreturn]] void throw_wrong_row(const int64_t* ids, int64_t row, int64_t rows, int64_t k) {
  for (int64_t j = 0; j < k; ++j) {
    const int64_t id = ids[j];
    if (id < kNobody || id >= rows) {
      throw InvalidArgument(fmt::format(
          "row {} has the neighbour {} in column {}; the graph has {} rows, so that ids are 0 to {}, or -1 for nobody",
          row, id, j, rows, rows - 1));
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
  throw InvalidState("a graph's row was taken for wrong");
}

}  // namespace

void check_graph_ids(const int64_t* ids, int64_t rows, int64_t k, const Resources& resources) {
  std::atomic<int64_t> first_wrong{rows};
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("check", rows, quiet);
  parallel_for(divide_up(rows, kRowsPerTask), meter, quiet, [&](int64_t task, int) {
    std::vector<int64_t> sorted;
    const int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      if (is_sound(ids + row * k, row, rows, k, sorted)) continue;
      int64_t before = first_wrong.load();
      while (row < before && !first_wrong.compare_exchange_weak(before, row)) {
      }
      return;
    }
  });
  const int64_t wrong = first_wrong.load();
  if (wrong < rows) throw_wrong_row(ids + wrong * k, wrong, rows, k);
}

}  // namespace kith
