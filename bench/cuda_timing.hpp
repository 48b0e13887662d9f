// Memory on a device for a benchmark, and times of what is enqueued on a stream, by CUDA events.
#pragma once

#include <kith/error.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <vector>

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw kith::DeviceError(cudaGetErrorString(error));
}

// Memory on the device, filled once.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes) { check(cudaMalloc(&data_, bytes)); }
  template <typename T>
  explicit DeviceBytes(const std::vector<T>& values) : DeviceBytes(values.size() * sizeof(T)) {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceBytes() { (void)cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

struct Times {  // milliseconds
  double best = 0;
  double median = 0;
};

class StreamTimer {
 public:
  StreamTimer() {
    check(cudaStreamCreate(&stream_));
    check(cudaEventCreate(&start_));
    check(cudaEventCreate(&stop_));
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;
  ~StreamTimer() {
    (void)cudaEventDestroy(start_);
    (void)cudaEventDestroy(stop_);
    (void)cudaStreamDestroy(stream_);
  }

  cudaStream_t stream() const { return stream_; }

  // Times `runs` calls, after one that does not count.
  template <typename Call>
  Times of(int64_t runs, const Call& call) const {
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
    return {times.front(), times[times.size() / 2]};
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};
