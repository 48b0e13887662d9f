#include "index/factory.hpp"

#include <kith/error.hpp>

#include "index/flat.hpp"
#include "index/lists_kind.hpp"
#include "index/refined_kind.hpp"
#include "index/transformed_kind.hpp"
#include "quantize/additive/norm_names.hpp"

#include <fmt/format.h>

#include <charconv>

namespace kith {
namespace {

// A part of a factory string while it is read, from left to right.
class Part {
 public:
  Part(std::string_view text, std::string_view factory) : left_(text), text_(text), factory_(factory) {}

  // Takes the word where the part goes on with it.
  bool take(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  bool at_number() const { return !left_.empty() && left_[0] >= '0' && left_[0] <= '9'; }
  // A positive number that must be here.
  int64_t number() {
    int64_t value = 0;
    const auto [after, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error == std::errc::invalid_argument || !at_number()) unknown();
    if (error != std::errc() || value > kLargest) {
      throw InvalidArgument(
          fmt::format("the part '{}' of the index '{}' has a number that is too large", text_, factory_));
    }
    if (value < 1)
      throw InvalidArgument(fmt::format("the part '{}' of the index '{}' has a 0; it starts at 1", text_, factory_));
    left_.remove_prefix(static_cast<size_t>(after - left_.data()));
    return value;
  }
  bool done() const { return left_.empty(); }
  void finish() const {
    if (!done()) unknown();
  }
  [[noreturn]] void unknown() const {
    throw InvalidArgument(fmt::format(
        "unknown part '{}' of the index '{}'; known are, in this order: IDMap; OPQm, OPQm_n, PCAn, PCARn, RR, RRn, "
        "L2norm, Padn, Centre; IVFn, IVF; Flat, SQ8, SQ6, SQ4, SQfp16, SQbf16, PQm, PQmxb, LSQm, LSQmxb, RQm, "
        "RQmxb, these with _Ncqint8, _Nqint8, _Nfloat or "
        "_Nnone; RFlat, Refine(...), with "
        "numbers for the small letters",
        text_, factory_));
  }
  std::string_view text() const { return text_; }
  std::string_view factory() const { return factory_; }

 private:
  static constexpr int64_t kLargest = int64_t{1} << 31;
  std::string_view left_;
  std::string_view text_;
  std::string_view factory_;
};

// At commas that are not in parentheses.
std::vector<std::string_view> split(std::string_view factory) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= factory.size(); ++i) {
    if (i < factory.size() && factory[i] == '(') ++depth;
    if (i < factory.size() && factory[i] == ')') --depth;
    if (i < factory.size() && (factory[i] != ',' || depth > 0)) continue;
    parts.push_back(factory.substr(start, i - start));
    start = i + 1;
  }
  return parts;
}

bool take_transform(Part part, std::vector<TransformSpec>* transforms) {
  TransformSpec spec;
  if (part.take("OPQ")) {
    spec.kind = TransformKind::opq;
    spec.parts = part.number();
    if (part.take("_")) spec.cols = part.number();
  } else if (part.take("PCAR")) {
    spec.kind = TransformKind::pca;
    spec.cols = part.number();
    transforms->push_back(spec);
    spec = {.kind = TransformKind::random_rotation};
  } else if (part.take("PCA")) {
    spec.kind = TransformKind::pca;
    spec.cols = part.number();
  } else if (part.take("RR")) {
    spec.kind = TransformKind::random_rotation;
    if (part.at_number()) spec.cols = part.number();
  } else if (part.take("L2norm") || part.take("L2Norm")) {
    spec.kind = TransformKind::unit_length;
  } else if (part.take("Pad")) {
    spec.kind = TransformKind::padding;
    spec.cols = part.number();
  } else if (part.take("Centre")) {
    spec.kind = TransformKind::centring;
  } else {
    return false;
  }
  part.finish();
  transforms->push_back(spec);
  return true;
}

// Codebooks, their bits and what codes say of the norm: "LSQ8x8", "RQ16x4", "LSQ7x8_Ncqint8".
void take_additive(Part& part, CodeSpec* spec) {
  constexpr int kBeam = 5;
  spec->kind = CodeKind::additive;
  if (part.text()[0] == 'R') {
    spec->search = AdditiveSearch::beam;
    spec->effort = kBeam;
  }
  spec->parts = part.number();
  if (part.take("x")) spec->bits = static_cast<int>(part.number());
  if (spec->parts < 1 || spec->parts > kMostCodebooks || spec->bits < 1 || spec->bits > 8) {
    throw InvalidArgument(
        fmt::format("the part '{}' of the index '{}' asks for {} codebooks of {} bits; there are 1 to {} of 1 to 8 bits",
                    part.text(), part.factory(), spec->parts, spec->bits, kMostCodebooks));
  }
  if (!part.take("_N")) return;
  for (const auto& [norm, name] : kNormNames.entries) {
    Part rest = part;
    if (!rest.take(name) || !rest.done()) continue;
    spec->norm = norm;
    part = rest;
    return;
  }
  throw InvalidArgument(
      fmt::format("the part '{}' of the index '{}' asks for norms that are not known; known are _Ncqint8, _Nqint8, "
                  "_Nfloat, and _Nnone for inner_product",
                  part.text(), part.factory()));
}

// None for "Flat".
std::optional<CodeSpec> take_code(Part part) {
  CodeSpec spec;
  if (part.take("Flat")) {
    part.finish();
    return std::nullopt;
  }
  if (part.take("SQfp16") || part.take("SQbf16")) {
    spec.dtype = part.text()[2] == 'f' ? DType::f16 : DType::bf16;
  } else if (part.take("SQ")) {
    spec.kind = CodeKind::scalar;
    spec.bits = static_cast<int>(part.number());
    if (spec.bits != 8 && spec.bits != 6 && spec.bits != 4) {
      throw InvalidArgument(fmt::format("the part '{}' of the index '{}' asks for {} bits; there are 8, 6, 4, and fp16",
                                        part.text(), part.factory(), spec.bits));
    }
  } else if (part.take("PQ")) {
    spec.kind = CodeKind::product;
    spec.parts = part.number();
    if (part.take("x")) spec.bits = static_cast<int>(part.number());
    if (spec.bits < 4 || spec.bits > 8) {
      throw InvalidArgument(fmt::format("the part '{}' of the index '{}' asks for {} bits; codes have 4 to 8",
                                        part.text(), part.factory(), spec.bits));
    }
    if (!part.take("fs")) (void)part.take("np");  // how FAISS searches the same codes
  } else if (part.take("LSQ") || part.take("RQ")) {
    take_additive(part, &spec);
  } else {
    part.unknown();
  }
  part.finish();
  return spec;
}

}  // namespace

FactorySpec parse_factory(std::string_view factory) {
  FactorySpec spec;
  const std::vector<std::string_view> parts = split(factory);
  size_t at = 0;
  const auto part = [&] {
    if (at < parts.size()) return Part(parts[at], factory);
    throw InvalidArgument(
        fmt::format("the index '{}' does not say what is kept of a vector: it needs Flat, SQ8, PQ16 or "
                    "another code behind '{}'",
                    factory, parts.back()));
  };
  if (parts[0] == "IDMap" || parts[0] == "IDMap2") ++at;
  while (take_transform(part(), &spec.transforms)) ++at;
  if (Part lists = part(); lists.take("IVF")) {
    spec.has_lists = true;
    if (!lists.done()) spec.lists = lists.number();
    lists.finish();
    ++at;
  }
  spec.code = take_code(part());
  if (++at == parts.size()) return spec;
  Part last = part();
  spec.refines = true;
  if (last.take("RFlat")) {
    last.finish();
  } else if (last.take("Refine(") && last.text().back() == ')') {
    const std::string_view inner = last.text().substr(7, last.text().size() - 8);
    spec.refine = take_code(Part(inner, factory));
    if (spec.refine && spec.refine->norm != CodeNorm::decoded) {
      throw InvalidArgument(fmt::format("the part '{}' of the index '{}' asks for norms; a second look goes by decoded "
                                        "vectors: leave out '{}'",
                                        last.text(), factory, norm_suffix(spec.refine->norm)));
    }
  } else {
    last.unknown();
  }
  if (++at < parts.size()) Part(parts[at], factory).unknown();
  return spec;
}

std::shared_ptr<const IndexKind> make_kind(const FactorySpec& spec, const IndexParams& params) {
  std::shared_ptr<const IndexKind> kind = spec.has_lists || spec.code.has_value()
                                              ? make_lists_kind({spec.has_lists, spec.lists, spec.code}, params)
                                              : make_flat(params);
  if (!spec.transforms.empty()) kind = make_transformed_kind(spec.transforms, std::move(kind), params);
  if (spec.refines) kind = make_refined_kind(spec.refine, std::move(kind), params);
  return kind;
}

}  // namespace kith
