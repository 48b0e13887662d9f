// How k-means will be done: a pure function of the problem and the budget.
#pragma once

#include <kith/device.hpp>
#include <kith/dtype.hpp>

#include "exact/knn_plan.hpp"

#include <cstdint>

namespace kith {

struct KMeansProblem {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t clusters = 0;
  DType dtype = DType::f32;
  bool spherical = false;
  bool in_memory = true;     // else rows are read from a file, piece by piece
  bool adds_up = true;       // centres are to be moved; else rows are only assigned
  int64_t sampled_rows = 0;  // kept as f32 beside, to choose the first centres from
  int64_t batch_rows = 0;    // of a mini-batch, gathered; 0 for whole passes
};

struct KMeansPlan {
  Device device = Device::cpu();
  int64_t piece_rows = 0;  // handed to the backend at a time: whole blocks of kSumBlock, or all rows
  int64_t host_bytes = 0;  // what the work allocates at its peak, results not included
};

// Throws OutOfMemory with the bytes of the smallest plan when nothing fits.
KMeansPlan plan_kmeans_cpu(const KMeansProblem& problem, const PlanBudget& budget);

}  // namespace kith
