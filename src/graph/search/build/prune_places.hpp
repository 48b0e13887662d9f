// Pruning on all threads: a pruner with memory for each thread, and a parallel loop over places.
#pragma once

#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "graph/search/build/prune.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

// The pruner of one thread.
struct PruneRoom {
  PruneRoom(const WalkRows& rows, int64_t degree, int64_t most, const Resources& resources)
      : pruner(rows, degree, most, resources),
        others(most, "candidates for neighbours", resources),
        sorted(most, "candidates for neighbours", resources) {}

  Pruner pruner;
  HostArray<uint32_t> others;
  HostArray<uint64_t> sorted;
};

class PruneRooms {
 public:
  // `most`: largest number of candidates of a place. The rows must outlive this object.
  PruneRooms(const WalkRows& rows, int64_t degree, int64_t most, const Resources& resources) {
    for (int i = 0; i < resources.threads(); ++i) {
      rooms_.push_back(std::make_unique<PruneRoom>(rows, degree, most, resources));
    }
  }
  PruneRoom& of(int slot) const { return *rooms_[static_cast<size_t>(slot)]; }

 private:
  std::vector<std::unique_ptr<PruneRoom>> rooms_;
};

// Calls work(i, slot) for each i below `count`, in chunks on all threads.
template <typename Work>
void for_places(int64_t count, int64_t together, std::string_view stage, const Resources& resources, const Work& work) {
  ProgressMeter meter(stage, count, resources);
  parallel_for(divide_up(count, together), meter, resources, [&](int64_t task, int slot) {
    const int64_t end = std::min((task + 1) * together, count);
    for (int64_t i = task * together; i < end; ++i) work(i, slot);
    meter.add(end - task * together);
  });
  meter.finish();
}

}  // namespace kith
