#include "transform/transform_spec.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <charconv>

namespace kith {
namespace {

// The number at the front of `text`, which is cut off; nothing where there is none, or none that fits.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1 || number >= int64_t{1} << 31) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string near_divisors(int64_t cols, int64_t parts) {
  int64_t below = std::min(parts, cols);
  while (below > 1 && cols % below != 0) --below;
  int64_t above = std::max<int64_t>(parts, 1);
  while (above < cols && cols % above != 0) ++above;
  return fmt::format("{} and {}", std::max<int64_t>(below, 1), std::min(above, cols));
}

}  // namespace

std::optional<TransformSpec> parse_transform(std::string_view word) {
  if (word == "L2norm") return TransformSpec{TransformKind::unit_length};
  if (word == "Centre") return TransformSpec{TransformKind::centring};
  if (word == "RR") return TransformSpec{TransformKind::random_rotation};
  const auto begins = [&](std::string_view name) {
    if (!word.starts_with(name)) return false;
    word.remove_prefix(name.size());
    return true;
  };
  TransformSpec spec;
  if (begins("OPQ")) {
    spec.kind = TransformKind::opq;
    const std::optional<int64_t> parts = take_number(word);
    if (!parts) return std::nullopt;
    spec.parts = *parts;
    if (word.empty()) return spec;
    if (!begins("_")) return std::nullopt;
  } else if (begins("PCA")) {
    spec.kind = TransformKind::pca;
  } else if (begins("RR")) {
    spec.kind = TransformKind::random_rotation;
  } else if (begins("Pad")) {
    spec.kind = TransformKind::padding;
  } else {
    return std::nullopt;
  }
  const std::optional<int64_t> cols = take_number(word);
  if (!cols || !word.empty()) return std::nullopt;
  spec.cols = *cols;
  return spec;
}

std::vector<TransformSpec> parse_transforms(std::string_view words) {
  std::vector<TransformSpec> specs;
  for (;;) {
    const size_t comma = words.find(',');
    const std::string_view word = words.substr(0, comma);
    const std::optional<TransformSpec> spec = parse_transform(word);
    if (!spec) {
      throw InvalidArgument(
          fmt::format("unknown transform \"{}\"; known are PCA64, OPQ16, OPQ16_64, RR, RR64, Centre, L2norm and "
                      "Pad128, with numbers "
                      "of yours, divided by commas",
                      word));
    }
    specs.push_back(*spec);
    if (comma == std::string_view::npos) return specs;
    words.remove_prefix(comma + 1);
  }
}

bool needs_rows(TransformKind kind) {
  return kind == TransformKind::pca || kind == TransformKind::opq || kind == TransformKind::centring;
}

int64_t transformed_cols(const TransformSpec& spec, int64_t in) {
  const int64_t out = spec.cols == 0 ? in : spec.cols;
  if (out < 1) throw InvalidArgument(fmt::format("a transform to {} columns; there must be at least one", out));
  switch (spec.kind) {
    case TransformKind::pca:
      if (out > in) {
        throw InvalidArgument(
            fmt::format("PCA to {} columns of rows that have {}: it can only make fewer; use Pad{}, RR{} or OPQ", out,
                        in, out, out));
      }
      break;
    case TransformKind::padding:
      if (out < in) {
        throw InvalidArgument(
            fmt::format("padding to {} columns of rows that have {} already; PCA{} drops columns", out, in, out));
      }
      break;
    case TransformKind::centring:
    case TransformKind::unit_length:
      if (out != in) {
        throw InvalidArgument(fmt::format("a shift or a scaling keeps the {} columns; {} were asked for", in, out));
      }
      break;
    case TransformKind::opq:
      if (spec.parts < 1 || out % spec.parts != 0) {
        throw InvalidArgument(
            fmt::format("OPQ for {} parts of {} columns: the number of parts must divide that of columns; the nearest "
                        "that do are {}",
                        spec.parts, out, near_divisors(out, spec.parts)));
      }
      break;
    case TransformKind::random_rotation: break;
  }
  return out;
}

int64_t transformed_cols(const std::vector<TransformSpec>& specs, int64_t cols) {
  for (const TransformSpec& spec : specs) cols = transformed_cols(spec, cols);
  return cols;
}

}  // namespace kith
