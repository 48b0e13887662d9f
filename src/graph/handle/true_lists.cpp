#include "graph/handle/true_lists.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/ordered_key.hpp"
#include "core/within_limits.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "rows/row_sample.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kGathered = 4096;  // vectors at a time, unless one list has more: a GPU is waited for each time

int64_t rows_together(int64_t k) { return std::max<int64_t>(1, kGathered / (k + 1)); }

// Ids of some rows, one after the other.
HostArray<int64_t> ids_of(const NeighborsView& graph, const std::vector<uint32_t>& rows, const Resources& resources) {
  const int64_t row_bytes = array_bytes<int64_t>(graph.k);
  const auto count = static_cast<int64_t>(rows.size());
  HostArray<int64_t> ids(count * graph.k, "neighbours to look at", resources);
  ViewSource source(MatrixView(graph.ids, DType::u8, {graph.queries, row_bytes, row_bytes}, graph.space));
  gather(source, rows, MutableMatrixView(ids.data(), DType::u8, {count, row_bytes, row_bytes}), resources);
  return ids;
}

}  // namespace

int64_t true_lists_rows(int64_t count, int64_t k) { return std::min(rows_together(k), count) * (k + 1); }

HostArray<uint64_t> true_lists(const MatrixView& x, Metric metric, const std::vector<uint32_t>& rows,
                               const NeighborsView& graph, const Resources& resources) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t k = graph.k;
  const HostArray<int64_t> ids = ids_of(graph, rows, resources);
  HostArray<uint64_t> lists(count * k, "neighbours to look at", resources);
  const int64_t together = rows_together(k);
  MatrixBuffer vectors(x.dtype(), true_lists_rows(count, k), x.cols(), "rows and their neighbours", resources);
  ViewSource source(x);
  if (counts_only(resources)) {
    gather(source, std::vector<uint32_t>(static_cast<size_t>(vectors.view().rows())), vectors.mutable_view(),
           resources);
    return lists;
  }
  std::fill(lists.begin(), lists.end(), kPadding);
  std::vector<uint32_t> places(static_cast<size_t>(k));
  std::iota(places.begin(), places.end(), 1u);
  std::vector<float> keys(places.size());
  for (int64_t first = 0; first < count; first += together) {
    const int64_t end = std::min(count, first + together);
    std::vector<uint32_t> numbers;
    std::vector<int64_t> begins;
    for (int64_t i = first; i < end; ++i) {
      const uint32_t row = rows[static_cast<size_t>(i)];
      begins.push_back(static_cast<int64_t>(numbers.size()));
      numbers.push_back(row);
      for (int64_t j = 0; j < k && ids[i * k + j] >= 0; ++j) numbers.push_back(static_cast<uint32_t>(ids[i * k + j]));
    }
    begins.push_back(static_cast<int64_t>(numbers.size()));
    gather(source, numbers, vectors.mutable_view().slice(0, begins.back()), resources);
    for (int64_t i = first; i < end; ++i) {
      const int64_t begin = begins[static_cast<size_t>(i - first)];
      const int64_t found = begins[static_cast<size_t>(i - first + 1)] - begin - 1;
      PairKeys(vectors.view().slice(begin, found + 1), key_kind(metric)).of(0, places.data(), found, keys.data());
      uint64_t* const list = lists.data() + i * k;
      for (int64_t j = 0; j < found; ++j) {
        list[j] = pack_neighbor(ordered_key(keys[static_cast<size_t>(j)]), numbers[static_cast<size_t>(begin + 1 + j)]);
      }
      std::sort(list, list + found);
    }
  }
  return lists;
}

}  // namespace kith
