// The common interface of quantizers, which learn from rows how to turn vectors into codes of a few bytes and back.
//
// Codes are the same bytes on every device and with any number of threads. Rows, codes and outputs may be in host
// memory or in that of a GPU. Functions return when their result is complete. One thread may train while others encode:
// these use the training before.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kith {

struct TrainedCodec;

// Receives the codes of consecutive rows from `first` on, in host memory that is valid until it returns. Calls may come
// from another thread than the one that called encode(), but never two at once.
using CodesSink = std::function<void(int64_t first, const MatrixView& codes)>;

class KITH_EXPORT VectorQuantizer {
 public:
  // If this throws, the previous training stays. A file may be larger than the memory limit.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  bool trained() const;
  std::vector<float> values() const;  // the learned values; InvalidState before training
  int64_t dimension() const;          // columns of the vectors; 0 before training
  int64_t code_bytes() const;         // per vector; 0 before training

  // `codes`: u8, rows x code_bytes(). The parts of a code are packed from the lowest bit of the first byte on.
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  // The codes of a file, which is read in pieces and may be larger than the memory limit. They go to one array, or
  // piece by piece and in order to `out`, while the next piece is encoded.
  void encode(const VectorFile& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  void encode(const VectorFile& rows, const CodesSink& out, const Resources& resources = Resources()) const;
  // f32, rows x dimension().
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources = Resources()) const;

  // For each query, the contribution of every possible value of every part of a code to the squared distance
  // (Metric::sqeuclidean) or inner product: f32, queries x (parts * 2^bits), in host memory.
  void lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                    const Resources& resources = Resources()) const;

 protected:
  explicit VectorQuantizer(std::unique_ptr<TrainedCodec> codec);
  ~VectorQuantizer();
  VectorQuantizer(VectorQuantizer&&) noexcept;
  VectorQuantizer& operator=(VectorQuantizer&&) noexcept;

  void set_values(int64_t dimension, const VectorView<const float>& values);
  const TrainedCodec& trained_codec() const { return *codec_; }

 private:
  friend class QuantizerAccess;
  std::unique_ptr<TrainedCodec> codec_;
};

}  // namespace kith
