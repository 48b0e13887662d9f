// A trained code: rows of f32 to a few bytes each, and back. All codes are one type, so that whoever holds codes (lists
// of an index, files) knows none of them by name; what they are stands with their encoders (*_encoder.cpp).
//
// The same rows, seed and values give the same bytes on every processor, with any number of threads.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/counted_bytes.hpp"
#include "kernels/codes/code_format.hpp"
#include "quantize/code_encoder.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kith {

class Codec {
 public:
  // Rows of any dtype, as they are: their values have been checked. The source must not have been opened.
  // InvalidArgument for a recipe that wants levels of norms, which are of vectors with their centres
  // (ivf/model/norm_training.hpp). `trained` receives the values as they are learned; after an exception it keeps
  // those that are usable.
  static std::shared_ptr<const Codec> train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed,
                                            TrainedValues& trained, const Resources& resources);
  static std::shared_ptr<const Codec> train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed,
                                            const Resources& resources);
  static std::shared_ptr<const Codec> train(const CodeRecipe& recipe, const MatrixView& rows, uint64_t seed,
                                            const Resources& resources);
  // Least memory that training takes; on a GPU if the rows are there or the resources name one.
  static Footprint training_footprint(const CodeRecipe& recipe, const RowsInfo& rows, const Resources& resources) {
    return recipe.code->tables_footprint(recipe.format_for(rows.cols))
        .then(recipe.code->training_footprint(recipe, rows, resources));
  }
  // From what values() gave. InvalidArgument for values that no training gives: another number of them, or not finite.
  static std::shared_ptr<const Codec> from_parts(const CodeRecipe& recipe, int64_t cols, std::vector<float> values,
                                                 const Resources& resources = Resources());
  // The usual code of such a format.
  static std::shared_ptr<const Codec> from_parts(const CodeFormat& format, std::vector<float> values,
                                                 const Resources& resources = Resources());

  // What it holds counts against the resources' limit.
  Codec(const CodeRecipe& recipe, int64_t cols, std::vector<float> values, const Resources& resources)
      : tables_(recipe, cols, std::move(values)), counted_(tables_.bytes(), "a trained code", resources) {}
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  const CodeRecipe& recipe() const { return tables_.recipe; }
  const CodeFormat& format() const { return tables_.format; }
  // scalar: the least value of each column, then the span of each; product: parts x 2^bits x part_cols; stored: none;
  // additive: parts x 2^bits x cols, then what the levels of norms are made from (additive/code_norms.hpp).
  const std::vector<float>& values() const { return tables_.values; }
  CodecView view() const { return tables_.view(); }  // in host memory, valid as long as the codec
  const CodecTables& tables() const { return tables_; }
  int64_t bytes() const { return tables_.bytes(); }  // of host memory

  // Codes of the rows one after the other, format().bytes() each, on the device of `resources` or, where that is
  // automatic, where the rows lie. Can be counted as it stands.
  void encode(const MatrixView& rows, uint8_t* codes, const Resources& resources) const;
  void decode(const uint8_t* codes, int64_t count, const MutableMatrixView& out, const Resources& resources) const;
  // Where encode() of such rows in host memory would be, the device being left to it.
  Device encoding_device(const MatrixView& rows, const LocalSearchEncoding* how, const Resources& resources) const;
  // What encode() of such rows takes at least, likewise, beside them and the codes.
  Footprint encoding_footprint(const RowsInfo& rows, const Resources& resources) const {
    return recipe().code->encoding_footprint(recipe(), format(), rows, resources);
  }

  // The same with codes as a matrix of bytes; encoded ones follow each other without gaps, unless the code's encoder
  // takes others. `how`: of local search (EncodeTask).
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
              const LocalSearchEncoding* how = nullptr) const;
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const;

 private:
  const CodecTables tables_;
  const CountedBytes counted_;
};

// Whether both give the same codes and the same vectors.
bool same_code(const Codec& a, const Codec& b);

// InvalidArgument, naming the code, where a bit of its last byte behind its last sub-code is set: such a code is
// another quantizer's or damaged. Codes of product and additive quantizers without a norm, in host memory or on a
// device, which is waited for.
void refuse_unused_bits(const MatrixView& codes, const CodeFormat& format, const Resources& resources);

// What else a codec does on a GPU, like encode_cuda (code_encoder.hpp).
void decode_cuda(const CodecTables& codec, const MatrixView& codes, const MutableMatrixView& out, int device,
                 const Resources& resources);

// Lowers leasts and raises largests to the values of rows on the device.
void widen_ranges_cuda(const MatrixView& rows, float* leasts, float* largests, const Resources& resources);

// Codes from where they lie to elsewhere, both on the host or that device.
void copy_codes_cuda(const MatrixView& from, const MutableMatrixView& to, int device, const Resources& resources);

}  // namespace kith
