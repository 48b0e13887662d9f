// Working lists (working_lists.hpp) in the memory of a GPU that are offered neighbours in bulk: so many places for each
// row, in any order. A warp sorts the offers of its row and merges them in, nobody twice.
//
// Beside the lists lie their ends: what is not smaller than its list's end does not enter, and need not be offered.
//
// Memory: 8 length + 8 bytes a row. Time: one read of the offers and of the lists that get some, a write of what moved.
#pragma once

#include "cuda/device_context.hpp"
#include "graph/lists/working_lists.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct DeviceWorkingLists {
  uint64_t* entries = nullptr;  // rows x length packed neighbours, sorted, padded
  int64_t rows = 0;
  int64_t length = 0;
};

// With their ends.
struct DeviceListsRef : DeviceWorkingLists {
  uint64_t* ends = nullptr;  // the last of each list without its flag; kNoEnd where there is room
};

inline constexpr uint64_t kNoEnd = without_flag(kPadding);
// A list and its offers lie in the shared memory of a warp.
inline constexpr int64_t kLongestDeviceList = 8192;
inline constexpr int64_t kMostOfferPlaces = 8192;

// Offers to rows first, first + 1, ...: `places` for each, kPadding where there is none.
struct ListOffers {
  const uint64_t* offers = nullptr;
  int64_t places = 0;
  int64_t first = 0;
  int64_t rows = 0;
};

// Their sum; waits.
int64_t read_count(const unsigned long long* counters, const DeviceContext& context);

// Sets the ends of lists that were written to. Enqueues.
void launch_list_ends(const DeviceListsRef& lists, cudaStream_t stream);

// Enqueues. `entered`, where it is given, has kCounters counters, to which the offers that stayed are added.
// InvalidArgument where lists are longer than kLongestDeviceList, or there are more than kMostOfferPlaces.
void launch_merge_offers(const DeviceListsRef& lists, const ListOffers& offers, unsigned long long* entered,
                         cudaStream_t stream);

}  // namespace kith
