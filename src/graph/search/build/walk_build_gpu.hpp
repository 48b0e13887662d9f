// The steps of build_walk_graph() that a GPU takes over, with the CPU's bytes: candidates, which stay there, pruning
// and links, connected parts, and a walk towards every place. And those of extend_walk_graph(): walks towards new
// places, and their links. No CUDA types; without CUDA there is none.
//
// Memory on the device: the codes and edges; while lists are made 12 bytes for each candidate and 16 for each edge,
// beside what knn_graph() takes.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/search/build/walk_entries.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace kith {

class WalkBuildGpu : public PlaceSearch {
 public:
  // Fills `out` with the nearest others of each row; both lie on the device.
  using FindCandidates = std::function<void(const MatrixView& rows, const NeighborsView& out, const Resources& used)>;

  // link_places() of so many candidates of each place. `rows`: as the build compares them: the codes, or values.
  virtual HostArray<uint32_t> link(const WalkRows& rows, int64_t candidates, const FindCandidates& find,
                                   const Resources& resources) = 0;
  // Lists that were made elsewhere.
  virtual void take_edges(const uint32_t* edges) = 0;

  // Codes that follow those of the graph's places. They stay there.
  virtual void take_more(const WalkView& graph, const std::byte* codes, int64_t count) = 0;
  // The beams of walks over the graph towards the codes that were taken: wish.beam places for each, kNoWalkPlace behind
  // the last.
  virtual HostArray<uint32_t> near_more(const WalkView& graph, int64_t count, const WalkWish& wish,
                                        const Resources& resources) = 0;
  // Links the last `count` of so many places into the lists of the others; returns all lists. `candidates`: of each new
  // place, as many places, -1 where there are no more.
  virtual HostArray<uint32_t> link_more(int64_t places, int64_t count, const HostArray<int64_t>& candidates,
                                        const Resources& resources) = 0;
};

// `codes`: of all places, in host memory; `room`: for more of them. The resources name the device.
std::unique_ptr<WalkBuildGpu> make_walk_build_gpu(const WalkRows& codes, int64_t degree, const Resources& resources,
                                                  int64_t room = 0);

}  // namespace kith
