// Memory on the GPU for benchmarks, filled once, and times by CUDA events.
#pragma once

#include <kith/error.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw kith::DeviceError(cudaGetErrorString(error));
}

class DeviceArray {
 public:
  explicit DeviceArray(size_t bytes) { check(cudaMalloc(&data_, bytes)); }
  template <typename T>
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size() * sizeof(T)) {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// The milliseconds of calls that enqueue on one stream, sorted; one more call goes before.
class EventTimer {
 public:
  EventTimer() {
    check(cudaStreamCreate(&stream_));
    check(cudaEventCreate(&start_));
    check(cudaEventCreate(&stop_));
  }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  cudaStream_t stream() const { return stream_; }

  std::vector<double> times(int64_t runs, const std::function<void()>& call) const {
    call();
    std::vector<double> times;
    for (int64_t i = 0; i < runs; ++i) {
      check(cudaEventRecord(start_, stream_));
      call();
      check(cudaEventRecord(stop_, stream_));
      check(cudaEventSynchronize(stop_));
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, start_, stop_));
      times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    return times;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};
