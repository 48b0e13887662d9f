#include "exact/tile_select_cuda.hpp"

#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/select/pack_selected_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

namespace kith {

void TileSelect::run(const SelectedTile& tile, bool first, uint64_t* lists) const {
  if (tile.queries == 0) return;
  SelectInput input;
  input.values = tile.keys;
  input.rows = tile.queries;
  input.cols = tile.rows;
  input.row_stride = tile.stride;
  const SelectProblem problem = problem_of(input, shape_.k, SelectOrder::smallest);
  launch_select_rows(input, {at<float>(layout_.keys), at<int32_t>(layout_.columns), nullptr}, problem,
                     plan_select(problem, shape_.multiprocessors), at<std::byte>(layout_.select), stream_);
  uint64_t* const found = first ? lists : at<uint64_t>(layout_.found);
  launch_pack_selected({at<float>(layout_.keys), at<int32_t>(layout_.columns), tile.queries * shape_.k, tile.first_row,
                        tile.numbers, found},
                       stream_);
  if (!first) launch_merge_lists(found, lists, tile.queries, shape_.k, stream_);
}

}  // namespace kith
