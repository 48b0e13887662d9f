#include "exact/tile_select_cuda.hpp"

#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

namespace kith {

PackSelectedTask TileSelect::select(const SelectedTile& tile) const {
  SelectInput input;
  input.values = tile.keys;
  input.rows = tile.queries;
  input.cols = tile.rows;
  input.row_stride = tile.stride;
  const SelectProblem problem = problem_of(input, shape_.k, SelectOrder::smallest);
  launch_select_rows(input, {at(layout_.keys), at(layout_.columns), nullptr}, problem,
                     plan_select(problem, shape_.multiprocessors), at(layout_.select), stream_);
  return {at(layout_.keys), at(layout_.columns), tile.queries * shape_.k, tile.first_row,
          tile.numbers,            nullptr};
}

void TileSelect::run(const SelectedTile& tile, bool first, uint64_t* lists) const {
  if (tile.queries == 0) return;
  PackSelectedTask selected = select(tile);
  selected.neighbors = first ? lists : at(layout_.found);
  launch_pack_selected(selected, stream_);
  if (!first) launch_merge_lists(selected.neighbors, lists, tile.queries, shape_.k, stream_);
}

}  // namespace kith
