#include "exact/range_runs.hpp"

#include "core/divide.hpp"

#include <kith/error.hpp>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kRunsPerTask = 64;

}  // namespace

RangeRuns::Part* RangeRuns::add(int64_t runs, int64_t rows) {
  counted_ += rows;
  if (overflowed_ || rows == 0) return nullptr;
  Part part;
  try {
    part.runs = HostArray<Run>(runs, "the rows in range", resources_);
    part.neighbors = HostArray<uint64_t>(rows, "the rows in range", resources_);
  } catch (const OutOfMemory&) {
    overflowed_ = true;
    return nullptr;
  }
  part.run_count = runs;
  parts_.push_back(std::move(part));
  return &parts_.back();
}

void RangeRuns::clear() {
  parts_.clear();
  counted_ = 0;
  overflowed_ = false;
}

CollectedHits RangeRuns::collect(int64_t queries, ProgressMeter& meter) {
  CollectedHits collected(queries, resources_);
  int64_t* const offsets = collected.offsets();
  for (const Part& part : parts_) {
    for (int64_t i = 0; i < part.run_count; ++i) offsets[part.runs[i].query + 1] += part.runs[i].count;
  }
  for (int64_t query = 0; query < queries; ++query) offsets[query + 1] += offsets[query];
  const HostArray<int64_t> places = collected.make_room(resources_);
  auto* const next = places.data();
  uint64_t* const neighbors = collected.neighbors();
  for (Part& part : parts_) {
    const Run* const runs = part.runs.data();
    std::vector<const uint64_t*> starts(static_cast<size_t>(divide_up(part.run_count, kRunsPerTask)));
    const uint64_t* from = part.neighbors.data();
    for (int64_t i = 0; i < part.run_count; ++i) {
      if (i % kRunsPerTask == 0) starts[static_cast<size_t>(i / kRunsPerTask)] = from;
      from += runs[i].count;
    }
    parallel_for(static_cast<int64_t>(starts.size()), meter, resources_, [&](int64_t task, int) {
      const uint64_t* source = starts[static_cast<size_t>(task)];
      for (int64_t i = task * kRunsPerTask; i < std::min((task + 1) * kRunsPerTask, part.run_count); ++i) {
        std::copy_n(source, runs[i].count, neighbors + next[runs[i].query]);
        next[runs[i].query] += runs[i].count;  // no other run of the part is this query's
        source += runs[i].count;
      }
    });
    part = Part();
  }
  clear();
  sort_hits(collected, queries, meter, resources_);
  return collected;
}

}  // namespace kith
