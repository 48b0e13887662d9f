// .kith files of quantizers and transforms. They are in this room since they share names and formats with indexes: a
// quantizer is a codec with a name; transforms are their steps and training parameters.
#include <kith/error.hpp>
#include <kith/quantizer.hpp>
#include <kith/vector_transform.hpp>

#include "index/factory.hpp"
#include "index/index_file.hpp"
#include "io/file_error.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>

namespace kith {

Quantizer make_quantizer(std::string_view name, uint64_t seed, bool check_finite) {
  const FactorySpec spec = parse_factory(name);
  const bool alone = spec.transforms.empty() && !spec.has_lists && !spec.refines && spec.code;
  if (alone && spec.code->norm != CodeNorm::decoded) {
    throw InvalidArgument(
        fmt::format("'{}' asks for norms, which an index keeps beside codes; a quantizer has none: "
                    "leave out '{}'",
                    name, norm_suffix(spec.code->norm)));
  }
  if (alone) {
    if (auto made = spec.code->code->quantizer(*spec.code, seed, check_finite)) return std::move(*made);
  }
  throw InvalidArgument(fmt::format(
      "'{}' is not a quantizer; there are PQm, PQmxb, LSQmxb, RQmxb, SQ8, SQ6, SQ4 and SQfp16, with numbers for the "
      "small letters",
      name));
}

std::string name_of(const Quantizer& quantizer) {
  return std::visit(
      [](const VectorQuantizer& any) {
        const CodeRecipe& recipe = QuantizerAccess::codec(any).recipe;
        return recipe.code->name(recipe);
      },
      quantizer);
}

void save_quantizer(const VectorQuantizer& quantizer, const std::string& path, const Resources& resources) {
  if (!quantizer.trained()) throw InvalidState("the quantizer must be trained before it is saved: call train() first");
  const TrainedCodec& codec = QuantizerAccess::codec(quantizer);
  const auto trained = codec.codec();
  const CodeRecipe& recipe = codec.recipe;
  save_codec({{trained->format(), trained->values(), recipe.code, recipe.effort},
              codec.check_finite,
              codec.seed,
              {recipe.local.sweeps, recipe.local.perturbed, recipe.local.order == SweepOrder::random}},
             path, resources);
}

Quantizer load_quantizer(const std::string& path, const Resources& resources) {
  const QuantizerParts parts = load_codec(path, resources);
  CodeRecipe recipe = parts.codec.recipe();
  recipe.local.sweeps = parts.search.sweeps;
  recipe.local.perturbed = parts.search.perturbed;
  recipe.local.order = parts.search.random_order ? SweepOrder::random : SweepOrder::fixed;
  std::optional<Quantizer> made = recipe.code->quantizer(recipe, parts.seed, parts.check_finite);
  if (!made) {
    throw InvalidArgument(
        fmt::format("'{}' holds codes of {}, which are no quantizer's", path, name_of(parts.codec.format.dtype)));
  }
  const std::vector<float>& values = parts.codec.values;
  std::visit(
      [&](VectorQuantizer& any) {
        QuantizerAccess::set_values(any, parts.codec.format.cols,
                                    {values.data(), static_cast<int64_t>(values.size()), {}});
      },
      *made);
  return std::move(*made);
}

void save_transform(const VectorTransform& transform, const std::string& path, const Resources& resources) {
  const VectorTransformParams& params = transform.params();
  save_transforms({transform.steps(), params.steps, params.check_finite, params.seed}, path, resources);
}

VectorTransform load_transform(const std::string& path, const Resources& resources) {
  SavedTransforms saved = load_transforms(path, resources);
  if (saved.steps.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' does not say which steps were asked for: it was not written by save_transform", path));
  }
  try {
    VectorTransform transform({saved.steps, saved.seed, saved.check_finite});
    transform.set_steps(std::move(saved.transforms), resources);
    return transform;
  } catch (const InvalidArgument& error) {
    throw_corrupt(path, 0, error.what());
  }
}

}  // namespace kith
