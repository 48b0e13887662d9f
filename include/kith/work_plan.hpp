// What a graph or an index of so many rows will take, before anything is done: bytes, memory, disk and time of each
// phase, and what would help most. A pure function: nothing is read or measured, and any machine can plan for any
// other.
//
//   const WorkPlan plan = plan_work({.rows = 20'000'000, .cols = 96, .host_memory_limit = int64_t{1} << 30});
//
// Times come from the model by which devices are chosen (docs/scaling.md): its CPU is a small one, so that faster ones
// are done sooner.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kith {

struct PlanQuestion {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
  std::string factory = {};  // of an index that is built ("IVF4096,PQ32"); empty: a k-NN graph
  int64_t k = 10;            // of the graph, as all below
  Metric metric = Metric::l2;
  double recall = 0.99;  // 1: exact
  double probes = 0;     // of cells, where a run has told them; 0: those of data like SIFT

  int64_t host_memory_limit = kNoLimit;    // default: no limit
  int64_t device_memory_limit = kNoLimit;  // of the GPU
  bool gpu = false;                      // an H200; else the CPU
  int threads = 1;
  double disk_read = 2e9;  // of the disk, bytes a second
  double disk_write = 1e9;

  KITH_EXPORT void validate() const;
};

struct PlanPhase {
  std::string name = {};
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  int64_t blocks = 1;        // that the rows are cut into, each of which fits
  int64_t host_bytes = 0;    // of memory
  int64_t device_bytes = 0;  // of the GPU's
  int64_t disk_bytes = 0;    // that lie there at its end, results included, sources not
  double seconds = 0;
  std::string bound = {};  // what takes this time: "products", "reading" or "writing"
};

struct WorkPlan {
  std::string method;        // "exact", "cells", "nn_descent", or the factory string
  bool from_disk = false;    // does not fit into memory
  int64_t result_bytes = 0;  // of the files that it writes
  std::vector<PlanPhase> phases;
  std::vector<std::string> advice;  // what would help, most first: "stored as f16: 27 min instead of 54 min"

  KITH_EXPORT double seconds() const;
  KITH_EXPORT int64_t host_bytes() const;  // at its peak
  KITH_EXPORT int64_t device_bytes() const;
  KITH_EXPORT int64_t disk_bytes() const;
};

// InvalidArgument for a question that makes no sense, and for a factory string that is none.
KITH_EXPORT WorkPlan plan_work(const PlanQuestion& question);

}  // namespace kith
