// Working lists (working_lists.hpp) in the memory of a GPU that are offered neighbours in bulk: so many places for each
// row, in any order. A warp sorts the offers of its row and merges them in, without duplicates.
//
// Beside the lists lie their ends: what is not smaller than its list's end does not enter, and need not be offered.
//
// Memory: 8 length + 8 bytes a row. Time: one read of the offers and of the lists that get some, a write of what moved.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

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
// A list, of up to kLongestDeviceList, and its offers are in the shared memory of a warp.
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

// Passes over the lists: a survey after a round, the lists of some rows, lists of another length, and what the caller
// gets.

// The parts of a survey, which the host adds up in order: rows are added in blocks of a fixed size, so that sums do not
// depend on the launch.
inline constexpr int64_t kSurveyRows = 256;
constexpr int64_t survey_parts(int64_t rows) { return (rows + kSurveyRows - 1) / kSurveyRows; }

// One ListSurvey for each part, of the first k of each list; flags as in survey_lists(). Enqueues and returns.
void launch_survey_lists(const DeviceWorkingLists& lists, int64_t k, Metric metric, Flags flags, ListSurvey* parts,
                         cudaStream_t stream);

// The lists of rows[0], rows[1], ..., one after the other. Enqueues and returns.
void launch_gather_lists(const DeviceWorkingLists& lists, const uint32_t* rows, int64_t count, uint64_t* out,
                         cudaStream_t stream);

// `to` has the same rows and another length. Enqueues and returns.
void launch_resize_lists(const DeviceWorkingLists& lists, const DeviceWorkingLists& to, cudaStream_t stream);

// Rows first, first + 1, ... of the lists; `out` is on the device. Enqueues and returns.
void launch_write_lists(const DeviceWorkingLists& lists, Metric metric, int64_t first, const NeighborsView& out,
                        cudaStream_t stream);

}  // namespace kith
