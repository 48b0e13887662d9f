// What every quantizer of vectors does: it learns from rows, makes codes of a few bytes of vectors, and vectors of
// codes.
//
// Codes are the same bytes on every device, with any number of threads. Rows, codes and outputs may lie in host memory
// or in that of a GPU. Every function returns when its result is complete. One thread may train while others encode:
// these use what was there when they began.
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

// Takes the codes of the rows from `first` on, in host memory until it returns. May be called on another thread than the
// one that encodes, once at a time.
using CodesSink = std::function<void(int64_t first, const MatrixView& codes)>;

class KITH_EXPORT VectorQuantizer {
 public:
  // After an exception the former state stays. A file may be larger than the memory limit.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  bool trained() const;
  std::vector<float> values() const;  // that were learnt; InvalidState before training
  int64_t cols() const;               // of vectors; 0 before training, and so is
  int64_t code_bytes() const;         // of a vector

  // Parts of a code lie one after the other from the lowest bit of the first byte on. `codes`: u8, rows x code_bytes().
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  // The codes of a file, which is read piece by piece, ahead, and may be larger than the memory limit. They are one
  // array. They go to an array, or piece by piece, in order, to `out`, while those of the next one are made.
  void encode(const VectorFile& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  void encode(const VectorFile& rows, const CodesSink& out, const Resources& resources = Resources()) const;
  // f32, rows x cols().
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources = Resources()) const;

  // What each value that a part of a code can have adds to the squared distance (Metric::sqeuclidean) or inner product
  // of a query and a code: f32, queries x (parts * 2^bits), in host memory.
  void lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                    const Resources& resources = Resources()) const;

 protected:
  explicit VectorQuantizer(std::unique_ptr<TrainedCodec> codec);
  ~VectorQuantizer();
  VectorQuantizer(VectorQuantizer&&) noexcept;
  VectorQuantizer& operator=(VectorQuantizer&&) noexcept;

  void set_values(int64_t cols, const VectorView<const float>& values);
  const TrainedCodec& trained_codec() const { return *codec_; }

 private:
  friend class QuantizerAccess;
  std::unique_ptr<TrainedCodec> codec_;
};

}  // namespace kith
