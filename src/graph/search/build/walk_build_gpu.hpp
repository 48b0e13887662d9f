// The steps of build_walk_graph() done by a GPU, with the same result as on the CPU: candidates, which stay there,
// pruning and linking, connected components, and a walk to every place; and those of extend_walk_graph(): walks to new
// places, and linking them. The interface has no CUDA types; not available without CUDA.
//
// Device memory: the codes and edges; while lists are made, 12 bytes for each candidate and 16 for each edge, besides
// the memory of knn_graph().
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/search/build/walk_entries.hpp"
#include "graph/search/graph/walk_arrays_gpu.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace kith {

// The lists of some places, one after the other, in any order of places.
struct ListsOfPlaces {
  HostArray<uint32_t> places;
  HostArray<uint32_t> lists;
};

class WalkBuildGpu : public PlaceSearch {
 public:
  // Fills `out` with the nearest other rows of each row; both are in device memory.
  using FindCandidates = std::function<void(const MatrixView& rows, const NeighborsView& out, const Resources& used)>;

  // link_places() with that many candidates per place. `rows`: what the build compares: codes, or values.
  virtual HostArray<uint32_t> link(const WalkRows& rows, int64_t candidates, const FindCandidates& find,
                                   const Resources& resources) = 0;
  // Takes lists made elsewhere.
  virtual void take_edges(const uint32_t* edges) = 0;

  // Takes codes that follow those of the graph's places; they are kept on the device.
  virtual void take_more(const WalkView& graph, const std::byte* codes, int64_t count) = 0;
  // The beams of walks over the graph to the codes that were taken: params.beam places for each, padded with
  // kNoWalkPlace.
  virtual HostArray<uint32_t> near_more(const WalkView& graph, int64_t count, const WalkParams& params,
                                        const Resources& resources) = 0;
  // Links the last `count` of `places` into the lists of the others; returns theirs and those that have changed.
  // `candidates`: the same number for each new place, padded with -1.
  virtual ListsOfPlaces link_more(int64_t places, int64_t count, const HostArray<int64_t>& candidates,
                                  const Resources& resources) = 0;

  // The codes and lists of that many places as they are now, for others to use. Nothing else may be called after it.
  virtual WalkArraysOnGpu give(int64_t places) = 0;
};

// `codes`: of all places, in host memory; `room`: for that many more. `there`: the same codes, with lists, if the device
// has them. The resources name the device.
std::unique_ptr<WalkBuildGpu> make_walk_build_gpu(const WalkRows& codes, int64_t degree, const Resources& resources,
                                                  int64_t room = 0, const WalkArraysOnGpu& there = {});

}  // namespace kith
