// The order in which a GPU goes over the rows of a join: every row once, and rows that share neighbours near each other.
#include "graph/build/nn_descent/join_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kith {
namespace {

class CudaJoinOrderSmall : public OnCuda {};

std::vector<uint32_t> order_of(const std::vector<uint64_t>& lists, int64_t length) {
  const auto rows = static_cast<int64_t>(lists.size()) / length;
  const DeviceBytes there(lists.data(), lists.size() * 8);
  const JoinOrderLayout layout(rows);
  const DeviceBytes memory(static_cast<size_t>(layout.bytes));
  const DeviceBytes order(static_cast<size_t>(rows) * 4);
  launch_join_order({static_cast<uint64_t*>(there.data()), rows, length}, layout, static_cast<std::byte*>(memory.data()),
                    static_cast<uint32_t*>(order.data()), nullptr);
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<uint32_t> found(static_cast<size_t>(rows));
  order.read(found.data());
  return found;
}

bool has_every_row_once(std::vector<uint32_t> order) {
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> all(order.size());
  std::iota(all.begin(), all.end(), 0u);
  return order == all;
}

constexpr int64_t kGroupRows = 9;
constexpr int64_t kScatterStep = 7919;

// Rows of groups of nine, scattered by a step that is prime to their number: each names the eight others of its group.
std::vector<uint64_t> scattered_groups(int64_t rows, int64_t length) {
  std::vector<uint64_t> lists(static_cast<size_t>(rows * length), kPadding);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = i * kScatterStep % rows;
    for (int64_t j = 0, place = 0; j < kGroupRows && place < length; ++j) {
      const int64_t other = i / kGroupRows * kGroupRows + j;
      if (other == i || other >= rows) continue;
      const uint64_t flag = j % 2 == 0 ? kOldFlag : 0;
      lists[static_cast<size_t>(row * length + place)] =
          pack_neighbor(static_cast<uint32_t>(place), static_cast<uint32_t>(other * kScatterStep % rows)) | flag;
      ++place;
    }
  }
  return lists;
}

TEST_F(CudaJoinOrderSmall, HasEveryRowOnce) {
  for (const int64_t rows : {1, 2, 31, 257, 10'000}) {
    for (const int64_t length : {1, 3, 8, 64}) {
      EXPECT_TRUE(has_every_row_once(order_of(scattered_groups(rows, length), length))) << rows << " of " << length;
    }
    EXPECT_TRUE(has_every_row_once(order_of(std::vector<uint64_t>(static_cast<size_t>(rows * 4), kPadding), 4)));
  }
}

TEST_F(CudaJoinOrderSmall, BringsNeighborsTogether) {
  constexpr int64_t kRows = 9'000;
  const std::vector<uint32_t> order = order_of(scattered_groups(kRows, 16), 16);
  std::vector<int64_t> place(kRows);
  for (int64_t i = 0; i < kRows; ++i) place[order[static_cast<size_t>(i)]] = i;
  // A group has one least hash: it is one run of the order.
  int64_t together = 0;
  for (int64_t group = 0; group < kRows / kGroupRows; ++group) {
    int64_t first = kRows;
    int64_t last = 0;
    for (int64_t j = 0; j < kGroupRows; ++j) {
      const int64_t at = place[static_cast<size_t>((group * kGroupRows + j) * kScatterStep % kRows)];
      first = std::min(first, at);
      last = std::max(last, at);
    }
    together += last - first == kGroupRows - 1 ? 1 : 0;
  }
  EXPECT_GE(together, kRows / kGroupRows - 5);  // two hashes may be equal
}

}  // namespace
}  // namespace kith
