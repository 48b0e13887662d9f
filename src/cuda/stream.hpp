// A CUDA stream of our own. It waits for its work before it goes, so that nothing it copies outlives the memory copied.
#pragma once

#include "cuda/error.hpp"

namespace kith {

class Stream {
 public:
  // A blocking stream, ordered after what the caller put on the default stream: a matrix that lies on the device may
  // have been written there.
  Stream() { KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamDefault)); }
  ~Stream() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const { KITH_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace kith
