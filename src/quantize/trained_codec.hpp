// What the public quantizers share: a codec that is replaced by training while others may still use it, and the checks
// of what callers give.
#pragma once

#include <kith/metric.hpp>
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

class TrainedCodec {
 public:
  struct Trained {
    std::shared_ptr<const Codec> codec;
    std::vector<double> history;  // of the training, where it has one
  };

  TrainedCodec(const CodeRecipe& recipe, uint64_t seed, bool check_finite)
      : recipe_(recipe), seed_(seed), check_finite_(check_finite) {}

  // Where local search is cancelled, the codebooks of the last complete round are published.
  void train(const MatrixView& rows, const Resources& resources);
  void train(const VectorFile& rows, const Resources& resources);
  void set_values(int64_t cols, const VectorView<const float>& values);

  const CodeRecipe& recipe() const { return recipe_; }
  uint64_t seed() const { return seed_; }
  bool check_finite() const { return check_finite_; }
  std::shared_ptr<const Trained> find() const { return trained_.find(); }  // null before training
  std::shared_ptr<const Trained> get() const { return trained_.get(); }    // InvalidState before training

  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
              const LocalSearchEncoding* how = nullptr) const;
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const;
  void lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                    const Resources& resources) const;

 private:
  void train(RowSource& rows, const Resources& resources);
  // Not where the call is only counted: narrowed rows are not there then.
  bool checks_values(const Resources& resources) const {
    return check_finite_ && !resources.host_memory()->counts_only();
  }

  const CodeRecipe recipe_;
  const uint64_t seed_;
  const bool check_finite_;
  Published<Trained> trained_{"the quantizer is not trained; call train first"};
};

// For files of quantizers, which know them by their recipes.
class QuantizerAccess {
 public:
  static const TrainedCodec& codec(const VectorQuantizer& quantizer) { return *quantizer.codec_; }
  static TrainedCodec& codec(VectorQuantizer& quantizer) { return *quantizer.codec_; }
};

}  // namespace kith
