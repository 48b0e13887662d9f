// Ranks the cells nearest to each of many vectors on the CPU: exactly, by (canonical l2 key, cell).
//
// There are few centres, and many of them are requested. So approximate values for all centres are computed first
// (kernels/panels), and the smallest are selected (kernels/select/smallest_values.hpp). Keys are computed only where
// the products' error bounds leave the order open.
//
// Memory: the packed centres, and per thread kBlock values for every cell.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace kith {

class CellRanks {
 public:
  // Finds the `most` nearest of these f32 centres, which must outlive it.
  CellRanks(const MatrixView& centres, int64_t most, const Resources& resources);
  ~CellRanks();
  CellRanks(const CellRanks&) = delete;
  CellRanks& operator=(const CellRanks&) = delete;

  // Receives the number of a vector and its nearest cells; called on any thread.
  using Sink = std::function<void(int64_t vector, const uint32_t* cells)>;
  void rank(const MatrixView& vectors, ProgressMeter& meter, const Sink& sink);

  // Counts for each question the cells nearer than the given one, without the vector's own cell (`own` has
  // one for each vector). Questions come by ascending vector; `first` is the number of the first of `vectors`.
  void count_nearer(const MatrixView& vectors, int64_t first, const uint32_t* own,
                    std::span<const PlaceQuestion> questions, uint32_t* nearer);

 private:
  class Worker;

  const MatrixView centres_;
  const Resources resources_;
  PackedRows packed_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Writes the probes of the window: a row's own cell, then the others that were found. If `numbers` is given, these are
// indexes into it.
template <typename Found, typename Cell>
void put_probes(const Found* found, int64_t count, uint32_t own, const std::vector<uint32_t>* numbers,
                const RankWindow& window, Cell* probes) {
  int64_t place = 0;
  const auto put = [&](uint32_t cell) {
    if (window.holds(place)) probes[place - window.first] = static_cast<Cell>(cell);
    ++place;
  };
  put(own);
  for (int64_t j = 0; j < count && place < window.end(); ++j) {
    const auto at = static_cast<uint32_t>(found[j]);
    const uint32_t cell = numbers == nullptr ? at : (*numbers)[at];
    if (cell != own) put(cell);
  }
}

}  // namespace kith
