#include "core/cpu_model.hpp"

#include <algorithm>
#include <iterator>

namespace kith {

// f32 products on a small CPU. On faster CPUs and with faster formats a GPU is chosen too early, which costs less than
// the GPU's start. The data is in host memory.
MachineModel cpu_model(int threads, std::string_view instruction_set) {
  // Operations a second of a thread.
  struct Rates {
    double dense = 30e9;
    double grouped = 30e9;
    double encoding = 30e9;
    double training = 30e9;
    double ranked = 30e9;
    double graph = 250e9;  // cells of 1,000,000 x 128 on a Neoverse V1, in the products of one column that method_choice counts
  };
  // Two threads of a Xeon of 2.5 GHz (Cascade Lake): k-means of 200,000 x 128 bytes with 256 and 1,024 centres, lists and PQ32
  // of the same, graphs of 200,000 and 500,000 rows, the nearest of 400, 1,000 and 11,508 centres.
  constexpr Rates kVnni{80e9, 100e9, 35e9, 12e9, 110e9, 180e9};
  const bool vnni = instruction_set == "VNNI" || instruction_set == "AMX";
  const Rates rates = vnni ? kVnni : Rates();
  const auto each = [&](double rate) { return 1 / (rate * threads); };
  return MachineModel{
      {CostUnit::device_start, 0},
      {CostUnit::copied_byte, 0},
      {CostUnit::dense_product, each(rates.dense)},
      {CostUnit::grouped_product, each(rates.grouped)},
      {CostUnit::ranked_product, each(rates.ranked)},
      {CostUnit::f32_product, each(rates.encoding)},
      {CostUnit::f32_training, each(rates.training)},
      {CostUnit::f64_step, each(30e9)},
      {CostUnit::graph_product, each(rates.graph)},
  };
}

MachineModel cpu_model(int threads) { return cpu_model(threads, ""); }

bool is_instruction_set(std::string_view name) {
  // Kith's own, then Highway's.
  constexpr std::string_view kKnown[] = {
      "AMX",  "VNNI",  "MMLA", "DOTPROD",  "AVX10_2", "AVX3_SPR", "AVX3_ZEN4", "AVX3_DL",   "AVX3", "AVX2",
      "SSE4", "SSSE3", "SSE2", "SVE2_128", "SVE_256", "SVE2",     "SVE",       "NEON_BF16", "NEON", "NEON_WITHOUT_AES",
      "RVV",  "EMU128", "SCALAR"};
  return std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
}

}  // namespace kith
