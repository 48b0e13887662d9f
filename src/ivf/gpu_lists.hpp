// Inverted lists in the memory of a GPU, made from those on the host, and their search there. For code that is compiled
// with and without CUDA; without it every function is Unsupported.
//
// Memory: code bytes + 4 a vector, and what the search computes once: up to 4 bytes a vector more
// (prepare_lists_cuda.hpp), the centres with a copy laid out for products, the code's values.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/ivf_model.hpp"
#include "ivf/ivf_search.hpp"
#include "ivf/list_segment.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class GpuLists {
 public:
  virtual ~GpuLists() = default;
  virtual int64_t bytes() const = 0;  // on the device

  // As search_ivf(), but every query has exactly its `probes` lists. Queries are f32, on the host or on that device,
  // and so is `out`, of search.k neighbours; what it gets are rows. Returns when it is done.
  virtual void search(const MatrixView& queries, const IvfSearch& search, bool check_finite, const NeighborsView& out,
                      const Resources& resources) const = 0;
};

// The segments' lists, merged. OutOfMemory where the device has no room.
std::shared_ptr<const GpuLists> make_gpu_lists(int device, const IvfModel& model, const std::vector<Segment>& segments,
                                               const Resources& resources);

}  // namespace kith
