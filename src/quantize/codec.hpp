// A trained code: encodes rows of f32 in a few bytes each, and decodes them. All codes are one type, so that users of
// codes (lists of an index, files) need not know any of them by name; what differs is in the encoders (*_encoder.cpp).
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
  // Rows of any dtype, whose values have been checked. The source must not have been opened.
  // InvalidArgument for a recipe with levels of norms, which need vectors with their centres
  // (ivf/model/norm_training.hpp). `trained` receives the values as they are learned; after an exception it keeps
  // those that are usable.
  static std::shared_ptr<const Codec> train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed,
                                            TrainedValues& trained, const Resources& resources);
  static std::shared_ptr<const Codec> train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed,
                                            const Resources& resources);
  static std::shared_ptr<const Codec> train(const CodeRecipe& recipe, const MatrixView& rows, uint64_t seed,
                                            const Resources& resources);
  // The least memory that training takes; on a GPU if the rows are there or the resources name one.
  static Footprint training_footprint(const CodeRecipe& recipe, const RowsInfo& rows, const Resources& resources) {
    return recipe.code->tables_footprint(recipe.format_for(rows.cols))
        .then(recipe.code->training_footprint(recipe, rows, resources));
  }
  // From earlier values(). InvalidArgument for a wrong number of them, or values that are not finite.
  static std::shared_ptr<const Codec> from_parts(const CodeRecipe& recipe, int64_t cols, std::vector<float> values,
                                                 const Resources& resources = Resources());
  // With the default recipe of the format.
  static std::shared_ptr<const Codec> from_parts(const CodeFormat& format, std::vector<float> values,
                                                 const Resources& resources = Resources());

  // Its memory counts against the resources' limit.
  Codec(const CodeRecipe& recipe, int64_t cols, std::vector<float> values, const Resources& resources)
      : tables_(recipe, cols, std::move(values)), counted_(tables_.bytes(), "a trained code", resources) {}
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  const CodeRecipe& recipe() const { return tables_.recipe; }
  const CodeFormat& format() const { return tables_.format; }
  // scalar: the smallest value of each column, then the range of each; product: parts x 2^bits x part_cols; stored:
  // none; additive: parts x 2^bits x cols, then the values behind the levels of norms (additive/code_norms.hpp).
  const std::vector<float>& values() const { return tables_.values; }
  CodecView view() const { return tables_.view(); }  // in host memory; lives as long as the codec
  const CodecTables& tables() const { return tables_; }
  int64_t bytes() const { return tables_.bytes(); }  // of host memory

  // Contiguous codes of format().bytes() each, computed on the device of `resources`, or for `automatic` where the rows
  // are. May be called with counting resources.
  void encode(const MatrixView& rows, uint8_t* codes, const Resources& resources) const;
  void decode(const uint8_t* codes, int64_t count, const MutableMatrixView& out, const Resources& resources) const;
  // The device that encode() would choose for such rows in host memory.
  Device encoding_device(const MatrixView& rows, const LocalSearchEncoding* how, const Resources& resources) const;
  // The least memory that encode() of such rows takes beside rows and codes.
  Footprint encoding_footprint(const RowsInfo& rows, const Resources& resources) const {
    return recipe().code->encoding_footprint(recipe(), format(), rows, resources);
  }

  // The same with codes as a matrix of bytes, which must be contiguous unless the encoder allows gaps. `how` as in
  // EncodeTask.
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
              const LocalSearchEncoding* how = nullptr) const;
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const;

 private:
  const CodecTables tables_;
  const CountedBytes counted_;
};

// Whether both encode and decode alike.
bool same_code(const Codec& a, const Codec& b);

// InvalidArgument that names the code if a bit after its last sub-code is set: it comes from another quantizer, or is
// damaged. For codes of product and additive quantizers without norms, in host memory or on a device, for which it
// waits.
void refuse_unused_bits(const MatrixView& codes, const CodeFormat& format, const Resources& resources);

// Other operations on a GPU, under the conditions of encode_cuda() (code_encoder.hpp).
void decode_cuda(const CodecTables& codec, const MatrixView& codes, const MutableMatrixView& out, int device,
                 const Resources& resources);

// Widens the ranges from `leasts` to `largests`, by column, to include rows on the device.
void widen_ranges_cuda(const MatrixView& rows, float* leasts, float* largests, const Resources& resources);

// Copies codes between the host and that device.
void copy_codes_cuda(const MatrixView& from, const MutableMatrixView& to, int device, const Resources& resources);

}  // namespace kith
