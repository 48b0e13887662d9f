// What a block of a join keeps in shared memory behind the operands, and what its parts are given.
#pragma once

#include "graph/nn_descent/join_slots_cuda.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// join_value() as one operation, product * times + plus.
struct Weighed {
  float times;
  float plus;

  __device__ float value(float product) const { return fmaf(product, times, plus); }
};

inline constexpr int kNeededRoom = 512;  // pairs whose keys are needed; more, and all keys are computed

extern __shared__ __align__(128) std::byte join_shared[];  // operands, then their products; behind these the rest

class JoinMemory {
 public:
  __device__ JoinMemory(int base, int p) : base_(base), p_(p) {}

  // Of the samples.
  __device__ JoinFacts* facts() const { return at<JoinFacts>(0); }
  __device__ uint64_t* ends() const { return at<uint64_t>(16 * sample_places(p_)); }  // of their lists
  __device__ Weighed* weights() const { return at<Weighed>(24 * sample_places(p_)); }
  __device__ uint32_t* ids() const { return at<uint32_t>(32 * sample_places(p_)); }
  // Of the slots.
  __device__ uint64_t* nearest() const { return at<uint64_t>(slots_at()); }
  __device__ float* least() const { return at<float>(slots_at() + 48 * p_); }  // values, of more tiles than one
  // Pairs whose keys are needed: slot << 16 | the other sample's place, kOffered beside.
  __device__ uint32_t* needed() const { return at<uint32_t>(slots_at() + 72 * p_); }

  static constexpr int64_t bytes(int64_t p) { return 36 * sample_places(static_cast<int>(p)) + 72 * p + 4 * kNeededRoom; }

 private:
  static_assert(sizeof(JoinFacts) == 16 && sizeof(Weighed) == 8 && sample_places(1) % 2 == 0);
  __device__ int slots_at() const { return 36 * sample_places(p_); }
  // From the array itself, so that the compiler knows which memory it is.
  template <typename T>
  __device__ T* at(int bytes) const {
    return reinterpret_cast<T*>(join_shared + base_ + bytes);
  }

  int base_;  // behind the operands and products
  int p_;
};

struct JoinBlock {
  const JoinTask& task;
  JoinMemory memory;
  JoinSlots slots;
  int first_column;  // of the samples that NEW ones meet: all, or in a merge OLD ones

  __device__ const JoinCounts& counts() const { return slots.counts; }
};

}  // namespace kith
