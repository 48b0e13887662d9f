// How long work takes on a kind of device. Cost functions count what they do, in units of what was measured; the model of a
// device, one row of the table in machine_model.cpp, turns counts into seconds. Nothing is timed at run time, so that a
// choice depends on the data, the parameters and the kind of device alone.
//
//   Counts counts{{CostUnit::copied_byte, bytes}, {CostUnit::ranked_product, 2 * queries * rows * cols}};
//   model_of(gpu).seconds(counts) < cpu_model(threads).seconds(counts)
#pragma once

#include <kith/device.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace kith {

enum class CostUnit : uint8_t {
  // A whole job.
  device_start,  // until a GPU that may be asleep does anything
  copied_byte,   // from the host
  // One operation of a multiply-add, by who does it and what goes with it.
  dense_product,    // matrix units alone: rows against the centres of lists, short codebooks
  grouped_product,  // matrix units, with rows gathered or sums kept: k-means, graphs
  ranked_product,   // matrix units, with candidates re-ranked: exact search, lists
  f32_product,      // f32 units: encoding
  f32_training,     // f32 units, with sums by label: codewords, wide codebooks
  f64_step,         // f64 units: metrics without products
  // Graphs.
  graph_product,      // an operation of all pairs
  graph_start,        // of any method
  graph_cells_start,  // of cells
  graph_cells_row,    // the lists of a row
  graph_probe_row,    // a probe of a row, beside its products
  graph_tie,          // a pair as near as a row's last neighbour, compared in vain
  graph_descent_row,  // all rounds of a row, by metrics made of products
  graph_descent_row_chi_square,
  graph_descent_row_other,
  // Searches of lists.
  list_start,             // a list that some query visits
  decoded_vector,         // by a decoder of its own
  any_decoded_vector,     // by the general one
  query_table_column,     // tables of a query
  pair_table_column,      // tables of a query and a list
  summed_pair_table_part, // the same, where they are sums of two
  table_lookup,
  kUnits,
};
inline constexpr auto kCostUnits = static_cast<size_t>(CostUnit::kUnits);

// How often each unit of work is done.
class Counts {
 public:
  Counts() = default;
  Counts(std::initializer_list<std::pair<CostUnit, double>> counts) {
    for (const auto& [unit, count] : counts) add(unit, count);
  }
  Counts& add(CostUnit unit, double count) {
    of_[static_cast<size_t>(unit)] += count;
    return *this;
  }
  double operator[](CostUnit unit) const { return of_[static_cast<size_t>(unit)]; }

 private:
  std::array<double, kCostUnits> of_{};
};

// Seconds for one of each unit; infinity for work that this kind of device never does.
class MachineModel {
 public:
  explicit MachineModel(std::initializer_list<std::pair<CostUnit, double>> seconds);
  double operator[](CostUnit unit) const { return each_[static_cast<size_t>(unit)]; }
  double seconds(const Counts& counts) const;

 private:
  std::array<double, kCostUnits> each_;
};

MachineModel cpu_model(int threads);
// By compute capability. GPUs that are not in the table use the H200's row.
const MachineModel& model_of(const DeviceInfo& gpu);

// False if the CPU would finish before a GPU had started: then there is no need to look for one.
bool worth_a_gpu(const Counts& counts, int threads);
// The first GPU where it is predicted to take less time, with its start and copies; else the CPU.
Device faster_device(const Counts& counts, int threads, const std::vector<DeviceInfo>& gpus);

}  // namespace kith
