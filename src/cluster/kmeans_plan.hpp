// How k-means will be done: pure functions of the problem, the device and the budget.
#pragma once

#include <kith/device.hpp>
#include <kith/dtype.hpp>

#include "exact/knn_plan_cuda.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct KMeansProblem {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t clusters = 0;
  DType dtype = DType::f32;
  MemorySpace space;  // of the rows
  bool spherical = false;
  bool weighted = false;
  bool in_memory = true;      // else rows are read from a file, piece by piece
  bool adds_up = true;        // centres are to be moved; else rows are only assigned
  int64_t passes = 1;         // over all rows, at most
  int64_t sampled_rows = 0;   // kept as f32 beside, to choose the first centres from
  int64_t batch_rows = 0;     // of a mini-batch, gathered; 0 for whole passes
  bool check_finite = false;  // the backend refuses rows that are not, in its first pass: nobody has looked before
};

// Of a GPU.
struct KMeansCudaPlan {
  bool rows_stay = false;      // rows from the host are copied once and stay on the device
  bool rows_ahead = false;     // else: a piece of them comes while the one before it is worked on
  bool operands_stay = false;  // so do the operands of all rows
  bool plus_plus = false;      // k-means++ chooses there
  bool products = true;        // matrix units choose candidates; else every row is searched for by `rest`
  ProductEngine engine = ProductEngine::automatic;
  int multiprocessors = 0;
  int64_t rest_rows = 0;     // searched for at a time, of those with many centres about as near
  KnnCudaPlan rest;          // the exact search for these
  int64_t pinned_bytes = 0;  // host memory that rows pass through on their way
};

struct KMeansPlan {
  Device device = Device::cpu();
  int64_t piece_rows = 0;  // handed to the backend at a time: whole blocks of kSumBlock, or all rows
  int64_t host_bytes = 0;  // what the work allocates at its peak, results not included
  int64_t device_bytes = 0;
  KMeansCudaPlan cuda;
};

// Throws OutOfMemory with the bytes of the smallest plan when nothing fits.
KMeansPlan plan_kmeans_cpu(const KMeansProblem& problem, const PlanBudget& budget);
// `asked` is for tests: what the plan would otherwise choose itself.
KMeansPlan plan_kmeans_cuda(const KMeansProblem& problem, const DeviceInfo& device, const PlanBudget& budget,
                            ProductEngine asked = ProductEngine::automatic);

// What both need on the host before the loop begins: the first centres are chosen, by k-means++ in so many bytes, and
// the data are surveyed.
int64_t kmeans_start_bytes(const KMeansProblem& problem, int64_t plus_plus, int64_t piece, int threads);

// The search of so many rows among the centres that is left to exact search.
SearchTask rest_search(const KMeansProblem& problem, Device device, int64_t rows);

// All centres for each tile of rows, in parts where there are so few rows that they would leave the machine idle.
ProductSchedule schedule_nearest(int64_t rows, int64_t clusters, int multiprocessors);

// False where the CPU would be done before a GPU had started.
bool kmeans_worth_a_gpu(const KMeansProblem& problem, int threads);
// The device that `automatic` stands for: a GPU where the predicted time, its start and copies included, is shorter.
Device choose_kmeans_device(const KMeansProblem& problem, int threads, const std::vector<DeviceInfo>& gpus);

}  // namespace kith
