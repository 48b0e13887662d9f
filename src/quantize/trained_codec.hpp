// What the public quantizers share: a codec that is replaced by training while others may still use it, and the checks
// of what callers give.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "quantize/codec.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kith {

class TrainedCodec {
 public:
  TrainedCodec(const CodeSpec& spec, uint64_t seed, bool check_finite)
      : spec_(spec), seed_(seed), check_finite_(check_finite) {}

  void train(const MatrixView& rows, const Resources& resources);
  void train(const VectorFile& rows, const Resources& resources);
  void set_values(int64_t cols, const VectorView<const float>& values);

  std::shared_ptr<const Codec> find() const;  // null before training
  std::shared_ptr<const Codec> get() const;   // InvalidState before training

  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const;
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const;
  void lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                    const Resources& resources) const;

 private:
  void publish(std::shared_ptr<const Codec> codec);

  const CodeSpec spec_;
  const uint64_t seed_;
  const bool check_finite_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Codec> codec_;
};

}  // namespace kith
