// The k smallest entries of lists in any order, against a sort: equal keys, padding among the entries, lists shorter
// than k.
#include "cuda/operands.hpp"
#include "cuda/parity.hpp"

#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "kernels/select/select_entries_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace kith {
namespace {

class CudaSelectEntriesSmall : public OnCuda {};

constexpr int64_t kLists = 9;

// Few different keys, every row once, some places empty.
std::vector<uint64_t> random_entries(int64_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint64_t> entries;
  for (int64_t list = 0; list < kLists; ++list) {
    const auto first = entries.size();
    for (int64_t i = 0; i < length; ++i) {
      const uint32_t keys = list % 3 == 0 ? 1 : list % 3 == 1 ? 50 : 1u << 31;
      const float key = static_cast<float>(random() % keys) - 20;
      entries.push_back(random() % 4 == 0 ? kPadding : pack_neighbor(ordered_key(key), static_cast<uint32_t>(i)));
    }
    std::shuffle(entries.begin() + static_cast<std::ptrdiff_t>(first), entries.end(), random);
  }
  return entries;
}

TEST_F(CudaSelectEntriesSmall, EveryLengthAndK) {
  for (const int64_t length : {0, 1, 40, 1000, 3000}) {
    const std::vector<uint64_t> entries = random_entries(length, static_cast<uint32_t>(length) + 1);
    std::vector<int32_t> lengths;
    for (int64_t list = 0; list < kLists; ++list) lengths.push_back(static_cast<int32_t>(length - length * list / 9));
    const DeviceArray device(entries.data(), entries.size() * 8);
    const DeviceArray device_lengths(lengths.data(), lengths.size() * 4);
    for (const int64_t k : {1, 31, 33, 100, 200, 400, 1000, 2048}) {
      for (const bool ragged : {false, true}) {
        SCOPED_TRACE(testing::Message() << length << " entries, k " << k << (ragged ? ", ragged" : ""));
        const DeviceArray selected(static_cast<size_t>(kLists * k) * 8);
        launch_select_entries({as<uint64_t>(device), length, kLists, length,
                               ragged ? as<int32_t>(device_lengths) : nullptr, k, as<uint64_t>(selected)},
                              nullptr);
        const std::vector<uint64_t> found = read_back<uint64_t>(selected, kLists * k);
        for (int64_t list = 0; list < kLists; ++list) {
          const auto first = entries.begin() + list * length;
          std::vector<uint64_t> sorted(first, first + (ragged ? lengths[static_cast<size_t>(list)] : length));
          sorted.resize(sorted.size() + static_cast<size_t>(k), kPadding);
          std::sort(sorted.begin(), sorted.end());
          for (int64_t i = 0; i < k; ++i) {
            ASSERT_EQ(found[static_cast<size_t>(list * k + i)], sorted[static_cast<size_t>(i)]) << list << " " << i;
          }
        }
      }
    }
  }
}

TEST_F(CudaSelectEntriesSmall, RefusesALargerK) {
  EntrySelectTask task;
  task.k = kSelectEntriesLargestK + 1;
  EXPECT_THROW(launch_select_entries(task, nullptr), InvalidArgument);
}

}  // namespace
}  // namespace kith
