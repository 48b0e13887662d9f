// A quantizer is a codec with a name. This lies beside indexes, since both share names and files.
#include <kith/error.hpp>
#include <kith/quantizer.hpp>

#include "index/factory.hpp"
#include "index/index_file.hpp"
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

}  // namespace kith
