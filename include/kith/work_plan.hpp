// Predicts what building a graph or an index will take: bytes read and written, memory, disk and time of each phase,
// and what would save most. Times are a pure function of the question, on whatever machine it is asked: nothing is read
// or measured. What a graph takes in memory is what knn_graph() would ask for here.
//
//   const WorkPlan plan = plan_work({.rows = 20'000'000, .cols = 96, .host_memory_limit = int64_t{1} << 30});
//
// Times come from measured rates (docs/scaling.md). The choice of devices goes by a slow CPU instead, so that it is the
// same everywhere.
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
  std::string factory = {};  // plan this index ("IVF4096,PQ32"); empty: a k-NN graph

  // For graphs.
  int64_t k = 10;
  Metric metric = Metric::l2;
  double recall = 0.99;  // 1: exact
  double probes = 0;     // cells per row, if known from an earlier run; 0: as for data like SIFT
  bool ids_only = false;   // the form of its folder (graph_folder.hpp)
  bool int32_ids = false;

  int64_t host_memory_limit = kNoLimit;
  int64_t device_memory_limit = kNoLimit;  // of the GPU
  bool gpu = false;                        // plan for an H200 instead of the CPU
  int threads = 1;
  std::string instruction_set = {};  // of the CPU, as cpu_info() names it ("VNNI"); empty: any small CPU
  double disk_read = 2e9;  // bytes per second
  double disk_write = 1e9;

  KITH_EXPORT void validate() const;
};

struct PlanPhase {
  std::string name = {};
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  int64_t blocks = 1;        // pieces of the rows that each fit in memory
  int64_t host_bytes = 0;    // memory on the host
  int64_t device_bytes = 0;  // memory on the GPU
  int64_t disk_bytes = 0;    // on disk when it ends, results included, sources not
  double seconds = 0;
  std::string bound = {};  // what limits its speed: "products", "reading" or "writing"
};

struct WorkPlan {
  std::string method;        // "exact", "cells", "nn_descent", or the factory string
  bool from_disk = false;    // does not fit in memory
  int64_t result_bytes = 0;  // size of the result's files
  std::vector<PlanPhase> phases;
  std::vector<std::string> advice;  // the largest saving first: "stored as f16: 27 min instead of 54 min"

  KITH_EXPORT double seconds() const;
  KITH_EXPORT int64_t host_bytes() const;  // peak over the phases
  KITH_EXPORT int64_t device_bytes() const;
  KITH_EXPORT int64_t disk_bytes() const;
};

// InvalidArgument for a question that makes no sense and for an unknown factory string.
KITH_EXPORT WorkPlan plan_work(const PlanQuestion& question);

}  // namespace kith
