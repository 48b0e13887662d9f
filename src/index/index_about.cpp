#include "index/index_about.hpp"

#include <kith/error.hpp>

#include "core/name_table.hpp"
#include "io/container/section.hpp"
#include "io/container/words.hpp"
#include "quantize/code_encoder.hpp"

#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace kith {
namespace {

using Kind = TransformParts::Kind;

constexpr NameTable<Kind, 4> kTransformNames{{{{Kind::linear, "linear"},
                                               {Kind::shift, "shift"},
                                               {Kind::unit_length, "unit_length"},
                                               {Kind::padding, "padding"}}}};
constexpr int64_t kMostTransforms = 1000;  // a sanity limit, which also bounds the names of sections

// --- values of lines, to text and back

template <typename T>
const T& text_of(const T& value) {
  return value;
}
int text_of(bool value) { return value ? 1 : 0; }
std::string_view text_of(Metric metric) { return name_of(metric); }
std::string_view text_of(DType dtype) { return name_of(dtype); }
std::string text_of(const CodecParts& codec) {
  const CodeRecipe recipe = codec.recipe();
  return recipe.code->text(recipe, codec.format.cols);
}
std::string text_of(const SearchOptions& search) {
  return fmt::format("{} {} {}", search.sweeps, search.perturbed, search.random_order ? "random" : "fixed");
}
std::string text_of(const TransformParts& transform) {
  return fmt::format("{} {} {} {}", kTransformNames.name(transform.kind), transform.name.empty() ? "-" : transform.name,
                     transform.in, transform.out);
}

template <typename T>
void parse(std::string_view text, T& value) {
  value = Words(text).number<T>();
}
void parse(std::string_view text, bool& value) { value = Words(text).number<int64_t>() != 0; }
void parse(std::string_view text, std::string& value) { value = text; }
void parse(std::string_view text, Metric& metric) { metric = parse_metric(text); }
void parse(std::string_view text, DType& dtype) { dtype = parse_dtype(text); }
void parse(std::string_view text, CodecParts& codec) {
  const auto [recipe, cols] = parse_code_line(text);
  codec.format = {recipe.code->kind(), cols, recipe.dtype, recipe.bits, recipe.parts, recipe.norm};
  codec.code = recipe.code;
  codec.effort = recipe.effort;
}
void parse(std::string_view text, SearchOptions& search) {
  Words words(text);
  search.sweeps = words.number<int64_t>();
  search.perturbed = words.number<int64_t>();
  const std::string_view order = words.next();
  if (order != "random" && order != "fixed") throw AboutProblem(fmt::format("sweeps in the order '{}'", order));
  search.random_order = order == "random";
  if (search.sweeps < 1 || search.perturbed < 0 || search.perturbed > kMostCodebooks) {
    throw AboutProblem(fmt::format("{} sweeps and {} perturbed codes", search.sweeps, search.perturbed));
  }
}
void parse(std::string_view text, TransformParts& transform) {
  Words words(text);
  transform.kind = kTransformNames.parse(words.next(), "transform");
  const std::string_view name = words.next();
  transform.name = name == "-" ? "" : name;
  transform.in = words.number<int64_t>();
  transform.out = words.number<int64_t>();
}

// --- lines

class AboutWriter {
 public:
  template <typename T>
  void line(std::string_view key, const T& value) {
    about_.text += fmt::format("{} {}\n", key, text_of(value));
  }
  // A line of version 2, written only if the value is not the default.
  template <typename T>
  void later_line(std::string_view key, const T& value, const T& usual) {
    if (value == usual) return;
    line(key, value);
    about_.version = kContainerVersion;
  }
  void code_line(std::string_view key, const CodecParts& codec) {
    line(key, codec);
    if (codec.format.norm != CodeNorm::decoded) about_.version = kContainerVersion;
  }
  void count_line(std::string_view key, const std::vector<TransformParts>& values) { line(key, values.size()); }
  // Whether optional parts exist; their lines begin with this key.
  template <typename T>
  bool has(std::string_view, const std::optional<T>& parts) const {
    return parts.has_value();
  }
  AboutText take() { return std::move(about_); }

 private:
  AboutText about_{{}, kFirstContainerVersion};
};

class AboutReader {
 public:
  explicit AboutReader(std::string_view text) : left_(text) {}

  template <typename T>
  void line(std::string_view key, T& value) {
    try {
      parse(next(key), value);
    } catch (const InvalidArgument& error) {
      throw AboutProblem(error.what());
    }
  }
  template <typename T>
  void later_line(std::string_view key, T& value, const T&) {
    if (is_next(key)) line(key, value);
  }
  void code_line(std::string_view key, CodecParts& codec) { line(key, codec); }
  void count_line(std::string_view key, std::vector<TransformParts>& values) {
    int64_t count = 0;
    line(key, count);
    if (count < 0 || count > kMostTransforms) throw AboutProblem(fmt::format("{} {}", count, key));
    values.resize(static_cast<size_t>(count));
  }
  template <typename T>
  bool has(std::string_view key, std::optional<T>& parts) const {
    if (is_next(key)) parts.emplace();
    return parts.has_value();
  }

 private:
  bool is_next(std::string_view key) const {
    return left_.size() > key.size() && left_.substr(0, key.size()) == key && left_[key.size()] == ' ';
  }
  std::string_view next(std::string_view key) {
    const size_t end = left_.find('\n');
    if (!is_next(key) || end == std::string_view::npos) {
      throw AboutProblem(fmt::format("no line '{}' where it should be", key));
    }
    const std::string_view value = left_.substr(key.size() + 1, end - key.size() - 1);
    left_.remove_prefix(end + 1);
    return value;
  }

  std::string_view left_;
};

// The lines of each kind of parts, in order: written from const parts, read into mutable ones.
template <typename About, typename Parts>
void asked_lines(About& about, Parts& parts) {
  about.later_line("check_finite", parts.check_finite, true);
  about.later_line("seed", parts.seed, uint64_t{0});
}

template <typename About, typename Transforms>
void transform_lines(About& about, Transforms& transforms) {
  about.count_line("transforms", transforms);
  for (auto& transform : transforms) about.line("transform", transform);
}

template <typename About, typename Parts>
requires std::is_same_v<std::remove_const_t<Parts>, QuantizerParts>
void lines_of(About& about, Parts& parts) {
  about.code_line("codec", parts.codec);
  asked_lines(about, parts);
  about.later_line("search", parts.search, SearchOptions());
}

template <typename About, typename Parts>
requires std::is_same_v<std::remove_const_t<Parts>, SavedTransforms>
void lines_of(About& about, Parts& parts) {
  about.later_line("steps", parts.steps, std::string());
  asked_lines(about, parts);
  transform_lines(about, parts.transforms);
}

template <typename About, typename Parts>
requires std::is_same_v<std::remove_const_t<Parts>, IndexParts>
void lines_of(About& about, Parts& parts) {
  about.line("factory", parts.factory);
  about.line("metric", parts.metric);
  about.line("dtype", parts.dtype);
  about.line("check_finite", parts.check_finite);
  about.line("cols", parts.cols);
  about.line("rows", parts.rows);
  about.line("next_id", parts.next_id);
  about.line("probes", parts.probes);
  about.later_line("prepare", parts.prepare, true);
  about.later_line("expected_rows", parts.expected_rows, int64_t{0});
  about.later_line("seed", parts.seed, uint64_t{0});
  transform_lines(about, parts.transforms);
  if (about.has("lists", parts.lists)) {
    about.line("lists", parts.lists->lists);
    about.line("residual", parts.lists->residual);
    about.code_line("codec", parts.lists->codec);
  }
  if (about.has("graph", parts.graph)) {
    about.later_line("graph", parts.graph->degree, int64_t{0});
    about.later_line("graph_bits", parts.graph->bits, int64_t{8});
    about.line("graph_rows", parts.graph->rows);
    about.line("graph_places", parts.graph->places);
    about.line("graph_cells", parts.graph->cells);
    about.line("graph_entries", parts.graph->entry_count);
    about.line("graph_beams", parts.graph->beams);
    about.line("graph_clipped", parts.graph->clipped);
    about.line("graph_connected", parts.graph->connected);
    about.line("graph_lost", parts.graph->lost);
  }
  if (about.has("refine_codec", parts.refine)) {
    about.code_line("refine_codec", parts.refine->codec);
    about.line("refine_factor", parts.refine->factor);
  }
  if (about.has("tuned", parts.tuned)) {
    about.later_line("tuned", parts.tuned->count, int64_t{0});
    about.line("tuned_k", parts.tuned->k);
    about.line("tuned_rows", parts.tuned->rows);
  }
}

}  // namespace

template <typename Parts>
AboutText about_parts(const Parts& parts) {
  AboutWriter about;
  lines_of(about, parts);
  return about.take();
}
template AboutText about_parts(const IndexParts&);
template AboutText about_parts(const QuantizerParts&);
template AboutText about_parts(const SavedTransforms&);

template <typename Parts>
Parts parse_about(std::string_view text) {
  AboutReader about(text);
  Parts parts;
  lines_of(about, parts);
  if (text != about_parts(parts).text) throw AboutProblem("the text is not as Kith writes it");
  return parts;
}
template IndexParts parse_about(std::string_view);
template QuantizerParts parse_about(std::string_view);
template SavedTransforms parse_about(std::string_view);

}  // namespace kith
