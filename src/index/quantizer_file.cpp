// A quantizer is a codec with a name. This lies beside indexes, since both share names and files.
#include <kith/error.hpp>
#include <kith/quantizer.hpp>

#include "index/factory.hpp"
#include "index/index_file.hpp"
#include "quantize/additive/norm_names.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

constexpr int kHalfBits = 16;

VectorView<const float> view_of(const std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size()), {}};
}

template <typename Made>
void save(const Made& quantizer, CodeFormat format, uint64_t seed, const std::string& path, const Resources& resources,
          const SearchOptions& search = {}) {
  if (!quantizer.trained()) throw InvalidState("the quantizer must be trained before it is saved: call train() first");
  format.cols = quantizer.cols();
  save_codec({{format, quantizer.values()}, quantizer.params().check_finite, seed, search}, path, resources);
}

}  // namespace

Quantizer make_quantizer(std::string_view name, uint64_t seed, bool check_finite) {
  const FactorySpec spec = parse_factory(name);
  const bool alone = spec.transforms.empty() && !spec.has_lists && !spec.refines;
  if (!alone || !spec.code || (spec.code->kind == CodeKind::stored && spec.code->dtype != DType::f16)) {
    throw InvalidArgument(fmt::format(
        "'{}' is not a quantizer; there are PQm, PQmxb, LSQmxb, RQmxb, SQ8, SQ6, SQ4 and SQfp16, with numbers for the "
        "small letters",
        name));
  }
  const CodeSpec& code = *spec.code;
  if (code.norm != CodeNorm::decoded) {
    throw InvalidArgument(fmt::format("'{}' asks for norms, which an index keeps beside codes; a quantizer has none: "
                                      "leave out '{}'",
                                      name, norm_suffix(code.norm)));
  }
  if (code.kind == CodeKind::additive && code.search == AdditiveSearch::beam) {
    return ResidualQuantizer({code.parts, code.bits, code.effort, seed, check_finite});
  }
  if (code.kind == CodeKind::additive) {
    LocalSearchParams params;
    params.codebooks = code.parts;
    params.bits = code.bits;
    params.seed = seed;
    params.check_finite = check_finite;
    return LocalSearchQuantizer(params);
  }
  if (code.kind == CodeKind::product) return ProductQuantizer({code.parts, code.bits, seed, check_finite});
  return ScalarQuantizer({code.kind == CodeKind::stored ? kHalfBits : code.bits, check_finite});
}

std::string name_of(const Quantizer& quantizer) {
  if (const auto* const product = std::get_if<ProductQuantizer>(&quantizer)) {
    const ProductQuantizerParams& params = product->params();
    return params.bits == 8 ? fmt::format("PQ{}", params.parts) : fmt::format("PQ{}x{}", params.parts, params.bits);
  }
  if (const auto* const local = std::get_if<LocalSearchQuantizer>(&quantizer)) {
    return fmt::format("LSQ{}x{}", local->params().codebooks, local->params().bits);
  }
  if (const auto* const residual = std::get_if<ResidualQuantizer>(&quantizer)) {
    return fmt::format("RQ{}x{}", residual->params().codebooks, residual->params().bits);
  }
  const int bits = std::get<ScalarQuantizer>(quantizer).params().bits;
  return bits == kHalfBits ? "SQfp16" : fmt::format("SQ{}", bits);
}

void save_quantizer(const ProductQuantizer& quantizer, const std::string& path, const Resources& resources) {
  CodeFormat format;
  format.kind = CodeKind::product;
  format.bits = quantizer.params().bits;
  format.parts = quantizer.params().parts;
  save(quantizer, format, quantizer.params().seed, path, resources);
}

void save_quantizer(const ScalarQuantizer& quantizer, const std::string& path, const Resources& resources) {
  CodeFormat format;
  format.kind = quantizer.params().bits == kHalfBits ? CodeKind::stored : CodeKind::scalar;
  format.dtype = format.kind == CodeKind::stored ? DType::f16 : DType::f32;
  format.bits = format.kind == CodeKind::stored ? format.bits : quantizer.params().bits;
  save(quantizer, format, /*seed=*/0, path, resources);
}

void save_quantizer(const LocalSearchQuantizer& quantizer, const std::string& path, const Resources& resources) {
  CodeFormat format;
  format.kind = CodeKind::additive;
  format.bits = quantizer.params().bits;
  format.parts = quantizer.params().codebooks;
  const LocalSearchParams& params = quantizer.params();
  save(quantizer, format, params.seed, path, resources,
       {params.sweeps, params.perturbed, params.order == SweepOrder::random});
}

void save_quantizer(const ResidualQuantizer& quantizer, const std::string& path, const Resources& resources) {
  CodeFormat format;
  format.kind = CodeKind::additive;
  format.bits = quantizer.params().bits;
  format.parts = quantizer.params().codebooks;
  format.search = AdditiveSearch::beam;
  format.effort = static_cast<int>(quantizer.params().beam);
  save(quantizer, format, quantizer.params().seed, path, resources);
}

Quantizer load_quantizer(const std::string& path, const Resources& resources) {
  const QuantizerParts parts = load_codec(path, resources);
  const CodeFormat& format = parts.codec.format;
  const VectorView<const float> values = view_of(parts.codec.values);
  if (format.kind == CodeKind::product) {
    ProductQuantizerParams params;
    params.parts = format.parts;
    params.bits = format.bits;
    params.seed = parts.seed;
    params.check_finite = parts.check_finite;
    ProductQuantizer quantizer(params);
    quantizer.set_values(values);
    return quantizer;
  }
  if (format.kind == CodeKind::additive && format.search == AdditiveSearch::beam) {
    ResidualQuantizer quantizer({format.parts, format.bits, format.effort, parts.seed, parts.check_finite});
    quantizer.set_values(values);
    return quantizer;
  }
  if (format.kind == CodeKind::additive) {
    LocalSearchParams params;
    params.codebooks = format.parts;
    params.bits = format.bits;
    params.seed = parts.seed;
    params.check_finite = parts.check_finite;
    params.sweeps = parts.search.sweeps;
    params.perturbed = parts.search.perturbed;
    params.order = parts.search.random_order ? SweepOrder::random : SweepOrder::fixed;
    LocalSearchQuantizer quantizer(params);
    quantizer.set_values(values);
    return quantizer;
  }
  if (format.kind == CodeKind::stored && format.dtype != DType::f16) {
    throw InvalidArgument(fmt::format("'{}' holds codes of {}, which are no quantizer's", path, name_of(format.dtype)));
  }
  ScalarQuantizerParams params;
  params.bits = format.kind == CodeKind::stored ? kHalfBits : format.bits;
  params.check_finite = parts.check_finite;
  ScalarQuantizer quantizer(params);
  quantizer.set_values(format.cols, values);
  return quantizer;
}

}  // namespace kith
