// When what was enqueued on a stream before has been done.
#pragma once

#include "cuda/error.hpp"

namespace kith {

class Event {
 public:
  Event() { KITH_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { KITH_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // Whether it has come. What cannot be told, of a device that is gone, has.
  bool passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state != cudaSuccess) (void)cudaGetLastError();  // else the next launch would report it
    return state != cudaErrorNotReady;
  }
  // An event that was never recorded is done.
  void wait() const { KITH_CUDA_CHECK(cudaEventSynchronize(event_)); }
  // Where nothing can be thrown.
  void wait_quietly() const { (void)cudaEventSynchronize(event_); }
  void hold_up(cudaStream_t stream) const { KITH_CUDA_CHECK(cudaStreamWaitEvent(stream, event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace kith
