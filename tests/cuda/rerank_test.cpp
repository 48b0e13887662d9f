// Re-ranking by itself: canonical keys of the candidates given, as lists, as groups or as marks (query by query, and by
// tiles of rows), sorted, and padded or refused where they are fewer than k.
#include "cuda/operands.hpp"
#include "cuda/parity.hpp"

#include "core/ordered_key.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "kernels/rerank/rerank_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace kith {
namespace {

class CudaRerankSmall : public OnCuda {};

constexpr int64_t kQueries = 60;
constexpr int64_t kRows = 700;
constexpr int64_t kCols = 36;
constexpr int64_t kMost = 300;  // candidates
constexpr int64_t kK = 8;
constexpr uint32_t kFirstRow = 1000;  // the number of the base's first

enum class Way { lists, marks, tiles };

struct Candidates {
  std::vector<uint32_t> counts;
  std::vector<uint32_t> rows = std::vector<uint32_t>(kQueries * kMost);
  std::vector<uint32_t> marks = std::vector<uint32_t>(static_cast<size_t>(kQueries * mark_words(kRows)));

  // None, few and many, in no order.
  Candidates() {
    std::mt19937 random(51);
    std::vector<uint32_t> all(kRows);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
    for (size_t q = 0; q < kQueries; ++q) {
      std::shuffle(all.begin(), all.end(), random);
      counts.push_back(static_cast<uint32_t>(q % 3 == 0 ? q : q * 5));
      std::copy_n(all.begin(), counts[q], rows.begin() + static_cast<std::ptrdiff_t>(q * kMost));
      for (int64_t word = 0; word < mark_words(kRows); ++word) {
        for (int bit = 0; bit < 32; ++bit) {
          const auto end = all.begin() + counts[q];
          if (std::find(all.begin(), end, static_cast<uint32_t>(marked_row(word, bit))) == end) continue;
          marks[q * static_cast<size_t>(mark_words(kRows)) + static_cast<size_t>(word)] |= 1u << bit;
        }
      }
    }
  }

  template <typename T>
  std::vector<uint64_t> nearest(const T* queries, const T* base) const {
    std::vector<uint64_t> lists;
    for (size_t q = 0; q < kQueries; ++q) {
      std::vector<uint64_t> list(kK, kPadding);
      for (size_t i = 0; i < counts[q]; ++i) {
        const uint32_t row = rows[q * kMost + i];
        const float key = canonical_pair<KeyKind::squared_l2>(queries + q * kCols, base + row * kCols, kCols);
        list.push_back(pack_neighbor(ordered_key(key), kFirstRow + row));
      }
      std::sort(list.begin(), list.end());
      lists.insert(lists.end(), list.begin(), list.begin() + kK);
    }
    return lists;
  }
};

template <typename T>
void expect_reranked(const Vectors& queries, const Vectors& base, const std::vector<T>& query_values,
                     const std::vector<T>& base_values) {
  const Candidates candidates;
  const DeviceMatrix device_queries(queries);
  const DeviceMatrix device_base(base);
  const DeviceBytes counts(candidates.counts.data(), candidates.counts.size() * 4);
  const DeviceBytes rows(candidates.rows.data(), candidates.rows.size() * 4);
  const DeviceBytes marks(candidates.marks.data(), candidates.marks.size() * 4);
  const std::vector<uint32_t> no_limit(kQueries, kNanKey);
  const DeviceBytes limits(no_limit.data(), no_limit.size() * 4);
  const std::vector<uint64_t> expected = candidates.nearest(query_values.data(), base_values.data());

  RerankTask task;
  task.kind = KeyKind::squared_l2;
  task.queries = rows_on_device(device_queries);
  task.base = rows_on_device(device_base);
  task.cols = kCols;
  task.k = kK;
  task.first_row = kFirstRow;
  task.key_limits = as<uint32_t>(limits);
  task.room = kMost;
  for (const Way way : {Way::lists, Way::marks, Way::tiles}) {
    if (way == Way::tiles && task.base.dtype != DType::f32) continue;
    const bool marked = way != Way::lists;
    task.marks = marked ? as<uint32_t>(marks) : nullptr;
    task.row_counts = marked ? nullptr : as<uint32_t>(counts);
    task.rows = marked ? nullptr : as<uint32_t>(rows);
    task.capacity = kMost;
    for (const bool pads : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "way " << static_cast<int>(way) << (pads ? ", padded" : ""));
      const DeviceBytes lists(kQueries * kK * 8);
      const DeviceBytes failed((kQueries + 1) * 4);
      KITH_CUDA_CHECK(cudaMemset(lists.data(), 0, kQueries * kK * 8));
      KITH_CUDA_CHECK(cudaMemset(failed.data(), 0, (kQueries + 1) * 4));
      task.pads = pads;
      task.neighbors = as<uint64_t>(lists);
      const FailedQueries refuse{as<uint32_t>(failed), as<uint32_t>(failed) + 1};
      if (way == Way::tiles) {
        const DeviceBytes found_counts(kQueries * 4);
        const DeviceBytes entries(kQueries * kMost * 8);
        KITH_CUDA_CHECK(cudaMemset(found_counts.data(), 0, kQueries * 4));
        const int64_t shared = most_shared_bytes(cuda_devices().front().compute_capability);
        launch_rerank_tiles(task, cut_row_tiles(kRows, kCols, shared, 7),
                            {as<uint32_t>(found_counts), as<uint64_t>(entries)}, refuse, nullptr);
        KITH_CUDA_CHECK(cudaDeviceSynchronize());
      } else {
        launch_rerank(task, refuse, nullptr);
      }
      const std::vector<uint64_t> found = read_back<uint64_t>(lists, kQueries * kK);
      const std::vector<uint32_t> refused = read_back<uint32_t>(failed, kQueries + 1);
      uint32_t too_few = 0;
      for (size_t q = 0; q < kQueries; ++q) {
        const bool fails = !pads && candidates.counts[q] < kK;
        too_few += fails ? 1 : 0;
        const auto last = refused.begin() + 1 + refused[0];
        EXPECT_EQ(std::find(refused.begin() + 1, last, q) != last, fails) << "query " << q;
        for (size_t i = 0; i < kK && !fails; ++i) {
          ASSERT_EQ(found[q * kK + i], expected[q * kK + i]) << "query " << q << ", place " << i;
        }
      }
      EXPECT_EQ(refused[0], too_few);
    }
  }
}

TEST_F(CudaRerankSmall, ListsAndMarksPaddedOrRefused) {
  const Vectors queries = random_vectors(DType::f32, kQueries, kCols, 52);
  const Vectors base = random_vectors(DType::f32, kRows, kCols, 53);
  expect_reranked(queries, base, queries.floats, base.floats);
  const Vectors byte_queries = random_vectors(DType::u8, kQueries, kCols, 52);
  const Vectors byte_base = random_vectors(DType::u8, kRows, kCols, 53);
  expect_reranked(byte_queries, byte_base, byte_queries.bytes, byte_base.bytes);
}

}  // namespace
}  // namespace kith
