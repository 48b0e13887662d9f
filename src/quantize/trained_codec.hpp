// The common part of the public quantizers: a codec that training replaces while others may still use it, and checks of
// arguments.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include "core/memory_budget.hpp"
#include "core/published.hpp"
#include "quantize/codec.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

struct TrainedCodec {
  struct Trained {
    std::shared_ptr<const Codec> codec;
    std::vector<double> history;  // of training, if it has rounds
  };

  TrainedCodec(const CodeRecipe& code, uint64_t own_seed, bool checks)
      : recipe(code), seed(own_seed), check_finite(checks) {}

  std::shared_ptr<const Codec> codec() const { return trained.get()->codec; }  // InvalidState before training
  // If local search is cancelled, the codebooks of the last complete round are published.
  void train(RowSource& rows, const Resources& resources);
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
              const LocalSearchEncoding* how = nullptr) const;
  // Not if the call is only counted: narrowed rows do not exist then.
  bool checks_values(const Resources& resources) const {
    return check_finite && !resources.host_memory()->counts_only();
  }

  const CodeRecipe recipe;
  const uint64_t seed;
  const bool check_finite;
  Published<Trained> trained{"the quantizer is not trained; call train first"};
};

// For files of quantizers, which store their recipes.
class QuantizerAccess {
 public:
  static const TrainedCodec& codec(const VectorQuantizer& quantizer) { return *quantizer.codec_; }
  static void set_values(VectorQuantizer& quantizer, int64_t dimension, const VectorView<const float>& values) {
    quantizer.set_values(dimension, values);
  }
};

}  // namespace kith
