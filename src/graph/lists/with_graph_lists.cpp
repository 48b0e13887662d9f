#include "graph/lists/with_graph_lists.hpp"

#include "core/dispatch.hpp"
#include "graph/lists/graph_lists_cpu.hpp"
#include "rows/finite_check.hpp"

namespace kith {

namespace {

void check_rows(const MatrixView& x, const GraphRowsWish& wish, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  if (wish.check_finite) refuse_not_finite("base", x, {}, quiet);
  if (wish.metric == Metric::chi_square) refuse_negative("base", x, {}, quiet);
}

}  // namespace

void with_graph_lists(const MatrixView& x, const GraphRowsWish& rows, const Resources& resources,
                      const std::function<void(GraphLists&)>& use) {
  dispatch(
      resources.device(),
      [&] {
        check_rows(x, rows, resources);
        const PairRows pairs(x, key_kind(rows.metric), resources);
        const ControlRows control(x, rows.metric, rows.k, rows.seed, resources);
        WorkingLists lists(0, rows.k, resources);
        GraphListsCpu on_cpu(pairs, rows.metric, &control, lists, resources);
        use(on_cpu);
      },
      [&](int device) { use(*make_graph_lists_cuda(device, x, rows, resources)); });
}

}  // namespace kith
