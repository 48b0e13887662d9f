#include "index/index_about.hpp"

#include <kith/error.hpp>

#include "core/name_table.hpp"
#include "io/container/section.hpp"
#include "io/container/words.hpp"
#include "quantize/code_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

using Kind = TransformParts::Kind;

constexpr NameTable<Kind, 4> kTransformNames{{{{Kind::linear, "linear"},
                                               {Kind::shift, "shift"},
                                               {Kind::unit_length, "unit_length"},
                                               {Kind::padding, "padding"}}}};
constexpr int64_t kMostTransforms = 1000;  // more than anybody has, few enough for names of sections

// --- writing

class AboutText {
 public:
  template <typename T>
  void line(std::string_view key, const T& value) {
    text_ += fmt::format("{} {}\n", key, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string code_text(const CodecParts& codec) {
  const CodeRecipe recipe = codec.recipe();
  return recipe.code->text(recipe, codec.format.cols);
}

void write_transforms(AboutText& text, const std::vector<TransformParts>& transforms) {
  text.line("transforms", transforms.size());
  for (const TransformParts& transform : transforms) {
    text.line("transform", fmt::format("{} {} {} {}", kTransformNames.name(transform.kind),
                                       transform.name.empty() ? "-" : transform.name, transform.in, transform.out));
  }
}

// --- reading

class AboutReader {
 public:
  explicit AboutReader(std::string_view text) : left_(text) {}

  bool is_next(std::string_view key) const {
    return left_.size() > key.size() && left_.substr(0, key.size()) == key && left_[key.size()] == ' ';
  }
  std::string_view line(std::string_view key) {
    const size_t end = left_.find('\n');
    if (!is_next(key) || end == std::string_view::npos)
      throw AboutProblem(fmt::format("no line '{}' where it should be", key));
    const std::string_view value = left_.substr(key.size() + 1, end - key.size() - 1);
    left_.remove_prefix(end + 1);
    return value;
  }
  template <typename T = int64_t>
  T number(std::string_view key) {
    return Words(line(key)).number<T>();
  }

 private:
  std::string_view left_;
};

// The name's value, by one of Kith's own parsers.
template <typename Parse>
auto parse_name(std::string_view name, const Parse& parse) {
  try {
    return parse(name);
  } catch (const InvalidArgument& error) {
    throw AboutProblem(error.what());
  }
}

CodecParts parse_code(std::string_view line) {
  const auto [recipe, cols] = parse_name(line, [](std::string_view text) { return parse_code_line(text); });
  CodecParts codec;
  codec.format = {recipe.code->kind(), cols, recipe.dtype, recipe.bits, recipe.parts, recipe.norm};
  codec.code = recipe.code;
  codec.effort = recipe.effort;
  return codec;
}

SearchOptions parse_search(std::string_view line) {
  Words words(line);
  SearchOptions search;
  search.sweeps = words.number<int64_t>();
  search.perturbed = words.number<int64_t>();
  const std::string_view order = words.next();
  if (order != "random" && order != "fixed") throw AboutProblem(fmt::format("sweeps in the order '{}'", order));
  search.random_order = order == "random";
  if (search.sweeps < 1 || search.perturbed < 0 || search.perturbed > kMostCodebooks) {
    throw AboutProblem(fmt::format("{} sweeps and {} perturbed codes", search.sweeps, search.perturbed));
  }
  return search;
}

std::vector<TransformParts> read_transforms(AboutReader& reader) {
  const auto count = reader.number("transforms");
  if (count < 0 || count > kMostTransforms) throw AboutProblem(fmt::format("{} transforms", count));
  std::vector<TransformParts> transforms(static_cast<size_t>(count));
  for (TransformParts& transform : transforms) {
    Words words(reader.line("transform"));
    transform.kind =
        parse_name(words.next(), [](std::string_view name) { return kTransformNames.parse(name, "transform"); });
    const std::string_view name = words.next();
    transform.name = name == "-" ? "" : name;
    transform.in = words.number<int64_t>();
    transform.out = words.number<int64_t>();
  }
  return transforms;
}

void require_same(std::string_view text, std::string_view again) {
  if (text != again) throw AboutProblem("the text is not as Kith writes it");
}

}  // namespace

std::string about_codec(const QuantizerParts& parts) {
  AboutText text;
  text.line("codec", code_text(parts.codec));
  if (!parts.check_finite) text.line("check_finite", 0);
  if (parts.seed != 0) text.line("seed", parts.seed);
  if (parts.search != SearchOptions()) {
    text.line("search", fmt::format("{} {} {}", parts.search.sweeps, parts.search.perturbed,
                                    parts.search.random_order ? "random" : "fixed"));
  }
  return text.take();
}

std::string about_transforms(const SavedTransforms& parts) {
  AboutText text;
  if (!parts.steps.empty()) text.line("steps", parts.steps);
  if (!parts.check_finite) text.line("check_finite", 0);
  if (parts.seed != 0) text.line("seed", parts.seed);
  write_transforms(text, parts.transforms);
  return text.take();
}

std::string about_index(const IndexParts& parts) {
  AboutText text;
  text.line("factory", parts.factory);
  text.line("metric", name_of(parts.metric));
  text.line("dtype", name_of(parts.dtype));
  text.line("check_finite", static_cast<int>(parts.check_finite));
  text.line("cols", parts.cols);
  text.line("rows", parts.rows);
  text.line("next_id", parts.next_id);
  text.line("probes", parts.probes);
  if (!parts.prepare) text.line("prepare", 0);
  if (parts.expected_rows != 0) text.line("expected_rows", parts.expected_rows);
  if (parts.seed != 0) text.line("seed", parts.seed);
  write_transforms(text, parts.transforms);
  if (parts.lists) {
    text.line("lists", parts.lists->lists);
    text.line("residual", static_cast<int>(parts.lists->residual));
    text.line("codec", code_text(parts.lists->codec));
  }
  if (parts.refine) {
    text.line("refine_codec", code_text(parts.refine->codec));
    text.line("refine_factor", parts.refine->factor);
  }
  return text.take();
}

uint32_t about_version(const IndexParts& parts) {
  const bool plain_code = !parts.lists || parts.lists->codec.format.norm == CodeNorm::decoded;
  const bool plain = parts.prepare && parts.expected_rows == 0 && parts.seed == 0 && plain_code;
  return plain ? kFirstContainerVersion : kContainerVersion;
}

uint32_t about_version(const QuantizerParts& parts) {
  return parts.check_finite && parts.seed == 0 && parts.search == SearchOptions() ? kFirstContainerVersion : kContainerVersion;
}

uint32_t about_version(const SavedTransforms& parts) {
  const bool plain = parts.steps.empty() && parts.check_finite && parts.seed == 0;
  return plain ? kFirstContainerVersion : kContainerVersion;
}

QuantizerParts parse_about_codec(std::string_view text) {
  AboutReader reader(text);
  QuantizerParts parts;
  parts.codec = parse_code(reader.line("codec"));
  if (reader.is_next("check_finite")) parts.check_finite = reader.number("check_finite") != 0;
  if (reader.is_next("seed")) parts.seed = reader.number<uint64_t>("seed");
  if (reader.is_next("search")) parts.search = parse_search(reader.line("search"));
  require_same(text, about_codec(parts));
  return parts;
}

SavedTransforms parse_about_transforms(std::string_view text) {
  AboutReader reader(text);
  SavedTransforms parts;
  if (reader.is_next("steps")) parts.steps = reader.line("steps");
  if (reader.is_next("check_finite")) parts.check_finite = reader.number("check_finite") != 0;
  if (reader.is_next("seed")) parts.seed = reader.number<uint64_t>("seed");
  parts.transforms = read_transforms(reader);
  require_same(text, about_transforms(parts));
  return parts;
}

IndexParts parse_about_index(std::string_view text) {
  AboutReader reader(text);
  IndexParts parts;
  parts.factory = reader.line("factory");
  parts.metric = parse_name(reader.line("metric"), parse_metric);
  parts.dtype = parse_name(reader.line("dtype"), parse_dtype);
  parts.check_finite = reader.number("check_finite") != 0;
  parts.cols = reader.number("cols");
  parts.rows = reader.number("rows");
  parts.next_id = reader.number("next_id");
  parts.probes = reader.number("probes");
  if (reader.is_next("prepare")) parts.prepare = reader.number("prepare") != 0;
  if (reader.is_next("expected_rows")) parts.expected_rows = reader.number("expected_rows");
  if (reader.is_next("seed")) parts.seed = reader.number<uint64_t>("seed");
  parts.transforms = read_transforms(reader);
  if (reader.is_next("lists")) {
    ListParts& lists = parts.lists.emplace();
    lists.lists = reader.number("lists");
    lists.residual = reader.number("residual") != 0;
    lists.codec = parse_code(reader.line("codec"));
  }
  if (reader.is_next("refine_codec")) {
    RefineParts& refine = parts.refine.emplace();
    refine.codec = parse_code(reader.line("refine_codec"));
    refine.factor = reader.number<float>("refine_factor");
  }
  require_same(text, about_index(parts));
  return parts;
}

}  // namespace kith
