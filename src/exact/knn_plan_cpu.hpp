// How an exact search will be done on a CPU: pure functions of the task and the budget, so that any machine can plan,
// and test plans, for any other.
#pragma once

#include "core/machine_model.hpp"
#include "core/plan_budget.hpp"
#include "exact/search_task.hpp"
#include "kernels/panels/panel_format.hpp"

#include <cstdint>
#include <optional>

namespace kith {

// How the CPU chooses its candidates.
enum class CpuEngine : uint8_t {
  panels,  // many queries: tile by tile over packed panels, which are multiplied or compared
  direct,  // few queries: one pass over the rows as they are stored, or over those that a prepared base's screen leaves
};

struct KnnCpuPlan : KnnPlan {
  CpuEngine engine = CpuEngine::panels;
  PanelFormat format = PanelFormat::f32;  // of what is multiplied
  bool screens = false;                   // the direct engine looks at the prepared base's screen first
  bool dense = false;                     // there is memory to compute the keys of whole blocks (DenseScan)
  int64_t list_length = 0;                // candidates that a query's lists are made for
  int64_t query_block = 0;                // queries that one task searches for
  int64_t row_splits = 1;                 // tasks that share a block's rows
  int64_t blocks_together = 1;            // blocks of a task, where they share the panels that are made for them
  int64_t panel_rows = 0;                 // rows packed at a time, by each thread where an index lacks f32 panels

  // The format that queries are packed in; none if they are not.
  std::optional<PanelFormat> packed_queries() const {
    if (engine == CpuEngine::panels) return format;
    return screens ? std::optional(PanelFormat::rounded) : std::nullopt;
  }
};

// Whether a base that will be searched again is packed for this search. Fewer queries use what exists.
bool pays_to_prepare_cpu(const SearchTask& task);
// Whether fewer queries would be faster with a packed base too, by its screen.
bool few_want_prepared_cpu(const SearchTask& task, const CpuExtensions& cpu);

// The engine for this number of queries and this state and format of the base on such a CPU.
CpuEngine cpu_engine(const SearchTask& task, const CpuExtensions& cpu);

// The smallest plan where nothing fits.
KnnCpuPlan plan_knn_cpu(const SearchTask& task, const PlanBudget& budget);

// Counts of the work, from which a device is chosen.
Counts work_of(const SearchShape& shape);

}  // namespace kith
