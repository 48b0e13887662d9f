// Working lists (working_lists.hpp) in the memory of a GPU, and what is done to all of them at once.
//
// A list holds the first `length` by (key, row) of all that was offered to it, nobody twice, whatever the order. Offers
// come in bulk, so many places for each row; a warp sorts those of its row and merges them in. Beside the lists lie
// their ends: what is not smaller than its list's end does not enter, and need not be offered.
//
// Memory: 8 length + 8 bytes a row. Time: one read of the lists that get offers, and a write of what moved.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "cuda/device_buffer.hpp"
#include "graph/list_survey.hpp"
#include "graph/working_lists.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// For kernels.
struct DeviceListsRef {
  uint64_t* lists = nullptr;  // rows x length packed neighbours, sorted, padded
  uint64_t* ends = nullptr;   // the last of each list without its flag; kNoEnd where there is room
  int64_t rows = 0;
  int64_t length = 0;
};

inline constexpr uint64_t kNoEnd = without_flag(kPadding);
// A list and its offers lie in the shared memory of a warp.
inline constexpr int64_t kLongestDeviceList = 16384;

// Offers to rows first, first + 1, ...: `places` for each, kPadding where there is none, in any order.
struct ListOffers {
  const uint64_t* offers = nullptr;
  int64_t places = 0;
  int64_t first = 0;
  int64_t rows = 0;
};
inline constexpr int64_t kMostOfferPlaces = 8192;

// Counters that a kernel adds to, many so that they are not fought for; read_count() adds them up.
inline constexpr int64_t kCounters = 64;

class DeviceWorkingLists {
 public:
  DeviceWorkingLists() = default;
  // Empty lists. Unsupported where they are longer than kLongestDeviceList.
  DeviceWorkingLists(int64_t rows, int64_t length, std::shared_ptr<const DeviceContext> context,
                     const Resources& resources);
  static constexpr int64_t bytes_for(int64_t rows, int64_t length) { return rows * (8 * length + 8); }

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  const DeviceContext& context() const { return *context_; }
  std::shared_ptr<const DeviceContext> shared_context() const { return context_; }
  cudaStream_t stream() const { return context_->stream(); }
  DeviceListsRef ref() const;

  // Enqueues. `entered`, where it is given, has kCounters counters, to which the offers are added that stayed.
  void merge(const ListOffers& offers, unsigned long long* entered) const;
  // From lists of another length, as far as they fit.
  void take(const DeviceWorkingLists& other) const;
  // From the host and back; waits.
  void load(const WorkingLists& from) const;
  void store(WorkingLists& to) const;

  // As survey_lists(); waits.
  ListSurvey survey(int64_t k, Metric metric, Flags flags, const Resources& resources) const;
  // The first `count` of the lists of some rows, one after the other; waits.
  std::vector<uint64_t> first_of(const std::vector<uint32_t>& rows, int64_t count, const Resources& resources) const;
  // The first k of every list, as the caller gets them, to arrays on the host or on this device; enqueues there, waits
  // where they lie on the host.
  void write(Metric metric, const NeighborsView& out, const Resources& resources) const;

 private:
  int64_t rows_ = 0;
  int64_t length_ = 0;
  std::shared_ptr<const DeviceContext> context_;
  DeviceBuffer lists_;
  DeviceBuffer ends_;
};

// The sum of kCounters counters on the device; waits.
int64_t read_count(const unsigned long long* counters, const DeviceContext& context);

}  // namespace kith
