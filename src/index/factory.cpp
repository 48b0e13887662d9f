#include "index/factory.hpp"

#include <kith/error.hpp>
#include <kith/metric.hpp>
#include <kith/nearest_name.hpp>

#include "graph/search/graph/walk_graph.hpp"
#include "index/other_parts.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/code_encoder.hpp"
#include "quantize/name_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kith {
namespace {

// The possible parts, for error messages.
const std::string& known_parts() {
  static const std::string known =
      "IDMap; OPQm, OPQm_n, PCAn, PCARn, RR, RRn, L2norm, Padn, Centre; IVFn, IVF, Graphn, Graphnx4; Flat, " +
      known_code_names() + ", these with _Ncqint8, _Nqint8, _Nfloat or _Nnone; RFlat, Refine(...)";
  return known;
}

// What parts begin with, before their numbers.
std::vector<std::string_view> known_words() {
  static const std::string codes = known_code_names();
  std::vector<std::string_view> words = {"Flat", "IVF",    "Graph", "OPQ",    "PCA",   "PCAR",
                                         "RR",   "L2norm", "Pad",   "Centre", "RFlat", "IDMap"};
  for (std::string_view left = codes; !left.empty();) {
    const std::string_view name = left.substr(0, left.find(", "));
    words.push_back(name.substr(0, name.find_first_of("0123456789m")));  // m: where a number stands
    left.remove_prefix(std::min(left.size(), name.size() + 2));
  }
  return words;
}

class Part : public NamePart {
 public:
  Part(std::string_view text, std::string_view factory) : NamePart(text, factory, known_parts()) {}
};

// Splits at commas outside parentheses.
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

// None for "Flat".
std::optional<CodeRecipe> take_code(Part part) {
  if (!part.take("Flat")) return parse_code_name(part);
  part.finish();
  return std::nullopt;
}

std::string upper(std::string_view text) {
  std::string large(text);
  std::transform(large.begin(), large.end(), large.begin(), [](unsigned char c) { return std::toupper(c); });
  return large;
}

// Refuses "cosine", which is no part of an index.
void refuse_metrics(const std::vector<std::string_view>& parts) {
  for (const std::string_view part : parts) {
    bool is_metric = true;
    try {
      (void)parse_metric(part);
    } catch (const InvalidArgument&) {
      is_metric = false;
    }
    if (is_metric) {
      throw InvalidArgument(
          fmt::format("'{0}' is a metric, not a part of an index: Flat, for instance, and {0} as its metric", part));
    }
  }
}

// Refuses FAISS's words for which Kith has another one or none, and names Kith's.
void refuse_other_parts(const std::vector<std::string_view>& parts, std::string_view factory) {
  for (const std::string_view part : parts) {
    std::string advice = advice_for_part(part);
    if (advice.empty()) advice = advice_for_part(upper(part));  // "hnsw32"
    if (!advice.empty()) {
      throw InvalidArgument(fmt::format("Kith has no part '{}' of the index '{}': {}", part, factory, advice));
    }
  }
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

// Refuses parts such as "flat", "ivf256" and "Gragh32", with one wrong letter in a known word, and names that word.
void refuse_misspelled(const std::vector<std::string_view>& parts, std::string_view factory) {
  static const std::vector<std::string_view> words = known_words();
  for (const std::string_view part : parts) {
    const std::string_view word = part.substr(0, part.find_first_of("0123456789_("));
    if (std::find(words.begin(), words.end(), word) != words.end()) continue;
    std::string_view meant;
    for (const std::string_view known : words) {
      if (lower(known) == lower(word)) meant = known;
    }
    if (meant.empty() && word.size() > 3) meant = nearest_name(word, words);
    if (meant.empty()) continue;
    throw InvalidArgument(fmt::format("unknown part '{}' of the index '{}'; did you mean '{}{}'?", part, factory, meant,
                                      part.substr(word.size())));
  }
}

bool is_refining(std::string_view part) { return part.starts_with("RFlat") || part.starts_with("Refine("); }

// Sets the degree, and whether walks use codes of four bits.
void take_graph(Part graph, std::string_view factory, FactorySpec* spec) {
  const int64_t degree = graph.number();
  if (graph.take("x")) {
    const int64_t bits = graph.number();
    if (bits != 4) {
      throw InvalidArgument(
          fmt::format("the index '{}' has a graph walked by codes of {} bits; Graph{} is walked by 8, Graph{}x4 by 4",
                      factory, bits, degree, degree));
    }
    spec->four_bits = true;
  }
  graph.finish();
  spec->degree = degree;
  if (degree >= kDegreeStep && degree <= kMostDegree && degree % kDegreeStep == 0) return;
  throw InvalidArgument(
      fmt::format("the index '{}' has a graph of {} neighbours; Graph takes a multiple of {} from {} to {}", factory,
                  degree, kDegreeStep, kDegreeStep, kMostDegree));
}

// How a graph's vectors are stored.
std::optional<CodeRecipe> take_graph_code(const Part& part, std::string_view factory) {
  const std::optional<CodeRecipe> code = take_code(part);
  const std::string_view text = part.text();
  if (!code.has_value() || text == "SQ8" || text == "SQfp16") return code;
  throw InvalidArgument(
      fmt::format("the index '{}' keeps '{}' behind a graph; that takes Flat, SQ8 or SQfp16", factory, text));
}

FactorySpec parse_parts(const std::vector<std::string_view>& parts, std::string_view factory) {
  FactorySpec spec;
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
    for (TransformSpec& transform : spec.transforms) transform.for_lists = true;
    if (!lists.done()) spec.lists = lists.number();
    if (lists.take("_HNSW") && lists.at_number()) (void)lists.number();  // centres are found exactly here
    lists.finish();
    ++at;
  }
  if (Part graph = part(); !spec.has_lists && graph.take("Graph")) {
    take_graph(graph, factory, &spec);
    if (++at == parts.size()) return spec;
    if (!is_refining(parts[at])) {
      spec.code = take_graph_code(part(), factory);
      if (++at == parts.size()) return spec;
    }
  } else {
    spec.code = take_code(part());
    if (++at == parts.size()) return spec;
  }
  Part last = part();
  spec.refines = true;
  if (last.take("RFlat")) {
    last.finish();
  } else if (last.take("Refine(") && last.text().back() == ')') {
    const std::string_view inner = last.text().substr(7, last.text().size() - 8);
    spec.refine = take_code(Part(inner, factory));
    if (spec.refine && spec.refine->code->has_norms(*spec.refine)) {
      const std::string suffix = norm_suffix(spec.refine->norm);
      throw InvalidArgument(fmt::format(
          "the part '{}' of the index '{}' asks for norms; a second look goes by decoded vectors: {}", last.text(),
          factory, suffix.empty() ? "take SQ8 or RFlat" : fmt::format("leave out '{}'", suffix)));
    }
  } else {
    last.unknown();
  }
  if (++at < parts.size()) Part(parts[at], factory).unknown();
  return spec;
}

}  // namespace

std::string without_spaces(std::string_view factory) {
  std::string packed(factory);
  std::erase_if(packed, [](unsigned char c) { return std::isspace(c) != 0; });
  return packed;
}

FactorySpec parse_factory(std::string_view factory) {
  const std::vector<std::string_view> parts = split(factory);
  try {
    return parse_parts(parts, factory);
  } catch (const InvalidArgument&) {
    refuse_other_parts(parts, factory);
    refuse_metrics(parts);
    refuse_misspelled(parts, factory);
    throw;
  }
}

std::shared_ptr<const IndexKind> make_kind(const FactorySpec& spec, const IndexParams& params) {
  const bool coded = spec.has_lists || spec.code.has_value();
  std::shared_ptr<const IndexKind> kind = spec.degree > 0 ? make_graph_kind(spec, params)
                                          : coded         ? make_lists_kind(spec, params)
                                                          : make_flat(params);
  if (!spec.transforms.empty()) kind = make_transformed_kind(spec.transforms, std::move(kind), params);
  if (spec.refines) kind = make_refined_kind(spec.refine, std::move(kind), params);
  return kind;
}

}  // namespace kith
