// Encoding by beam search (additive_training.hpp) on a GPU, with the same bytes.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "quantize/additive/codebooks.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class BeamOnDevice {
 public:
  // Copies on the context's stream, and waits.
  BeamOnDevice(const Codebooks& books, int64_t beam, const std::shared_ptr<const DeviceContext>& context,
               const Resources& resources);

  int64_t bytes() const { return words_.bytes() + columns_.bytes(); }
  // Scratch values for residuals; independent of the number of rows.
  int64_t scratch_values() const { return blocks_ * books_.cols; }
  // Enqueues. f32 rows `stride` values apart; `codes`: a byte per row and book.
  void encode(const float* rows, int64_t stride, int64_t count, uint8_t* codes, float* scratch,
              cudaStream_t stream) const;

 private:
  Codebooks books_;  // of device memory
  int64_t beam_;
  DeviceArray<float> words_;
  DeviceArray<float> columns_;  // books x cols x words
  int blocks_ = 0;
};

}  // namespace kith
