#include "core/machine_model.hpp"

#include <limits>

namespace kith {
namespace {

// An H200 (compute capability 9.0, 132 multiprocessors). Operations a second of whole jobs; graphs are fitted to
// bench/results/h200/graph_cuda.jsonl, lists to 10,000 queries of 4,096 to 262,144 lists (ivf_cuda.jsonl there).
const MachineModel& h200() {
  static const MachineModel model{
      {CostUnit::device_start, 0.4},
      {CostUnit::copied_byte, 1 / 2e10},
      {CostUnit::dense_product, 1 / 2e14},
      {CostUnit::grouped_product, 1 / 1e14},
      {CostUnit::ranked_product, 1 / 5e13},
      {CostUnit::f32_product, 1 / 2e13},
      {CostUnit::f32_training, 1 / 1e13},
      {CostUnit::f64_step, 1 / 2.4e12},
      {CostUnit::graph_product, 1 / 4.3e14},
      {CostUnit::graph_start, 0.004},
      {CostUnit::graph_cells_start, 0.008},
      {CostUnit::graph_cells_row, 3.5e-8},
      {CostUnit::graph_probe_row, 5.5e-10},
      {CostUnit::graph_tie, 3.2e-9},
      {CostUnit::graph_descent_row, 5e-7},
      {CostUnit::graph_descent_row_chi_square, 1.5e-5},
      {CostUnit::graph_descent_row_other, 4e-6},
      {CostUnit::list_start, 26e-9},
      {CostUnit::decoded_vector, 0.034e-9},
      {CostUnit::any_decoded_vector, 0.115e-9},
      {CostUnit::query_table_column, 0.26e-9},
      {CostUnit::pair_table_column, 0.17e-9},
      {CostUnit::summed_pair_table_part, 0.45e-9},
      {CostUnit::table_lookup, 0.0004e-9},
  };
  return model;
}

}  // namespace

MachineModel::MachineModel(std::initializer_list<std::pair<CostUnit, double>> seconds) {
  each_.fill(std::numeric_limits<double>::infinity());
  for (const auto& [unit, value] : seconds) each_[static_cast<size_t>(unit)] = value;
}

double MachineModel::seconds(const Counts& counts) const {
  double sum = 0;
  for (size_t i = 0; i < kCostUnits; ++i) {
    const auto unit = static_cast<CostUnit>(i);
    if (counts[unit] != 0) sum += counts[unit] * each_[i];
  }
  return sum;
}

const MachineModel& model_of(const DeviceInfo&) { return h200(); }  // the table has one row

bool worth_a_gpu(const Counts& counts, int threads) {
  return cpu_model(threads).seconds(counts) > h200()[CostUnit::device_start];
}

Device faster_device(const Counts& counts, int threads, const std::vector<DeviceInfo>& gpus) {
  if (gpus.empty()) return Device::cpu();
  Counts there = counts;
  there.add(CostUnit::device_start, 1);
  return model_of(gpus.front()).seconds(there) < cpu_model(threads).seconds(counts) ? gpus.front().device
                                                                                    : Device::cpu();
}

}  // namespace kith
