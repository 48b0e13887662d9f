#include "transform/transform_training.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/within_limits.hpp"
#include "rows/row_sample.hpp"
#include "rows/rows_cuda.hpp"
#include "transform/opq.hpp"
#include "transform/principal_axes.hpp"
#include "transform/random_rotation.hpp"
#include "transform/training_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>

namespace kith {
namespace {

// Removes and returns the number at the front of `text`; nothing if there is none, or if it overflows.
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

namespace {

constexpr int64_t kTrainingRows = 65'536;
constexpr int64_t kTrainingRowsAColumn = 16;  // of PCA: wide vectors have more to be learnt

std::vector<float> as_floats(const Dense& matrix, int64_t rows) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows * matrix.cols()));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) values.push_back(static_cast<float>(matrix(i, j)));
  }
  return values;
}

int64_t most_rows(TransformKind kind, int64_t cols) {
  return kind == TransformKind::opq ? kTrainingRows : std::max(kTrainingRows, kTrainingRowsAColumn * cols);
}

// The shapes of the steps that a transform is trained to.
std::vector<TransformParts> shapes_of(const TransformSpec& spec, int64_t in) {
  using Step = TransformParts::Kind;
  const int64_t out = transformed_cols(spec, in);
  const TransformParts centre{Step::shift, "Centre", in, in, {}, {}};
  switch (spec.kind) {
    case TransformKind::pca: return {centre, {Step::linear, "PCA", in, out, {}, {}}};
    case TransformKind::centring: return {centre};
    case TransformKind::random_rotation: return {{Step::linear, "RR", in, out, {}, {}}};
    case TransformKind::unit_length: return {{Step::unit_length, "L2norm", in, in, {}, {}}};
    case TransformKind::padding: return {{Step::padding, "Pad", in, out, {}, {}}};
    case TransformKind::opq: return {{Step::linear, "OPQ", in, out, {}, {}}};
  }
  throw InvalidArgument("unknown transform");
}

std::vector<TransformParts> train_step(const TransformSpec& spec, const TrainingRows* rows, int64_t in, uint64_t seed,
                                       const Resources& resources) {
  std::vector<TransformParts> parts = shapes_of(spec, in);
  const int64_t out = parts.back().out;
  const auto shift_by = [&](const std::vector<float>& mean) {
    for (const float value : mean) parts.front().offset.push_back(0.0f - value);
  };
  if (spec.kind == TransformKind::pca) {
    const PrincipalAxes found = principal_axes(*rows, resources);
    shift_by(found.mean);
    parts.back().matrix = as_floats(found.axes, out);
  } else if (spec.kind == TransformKind::centring) {
    shift_by(column_means(*rows, resources));
  } else if (spec.kind == TransformKind::random_rotation) {
    parts.back().matrix = as_floats(random_rotation(in, out, seed, resources.with_progress({})), out);
  } else if (spec.kind == TransformKind::opq) {
    const OpqShape shape{.out = out, .parts = spec.parts, .for_lists = spec.for_lists};
    parts.back().matrix = as_floats(optimized_rotation(*rows, shape, seed, resources), out);
  }
  return parts;
}

TransformChain train_steps(const std::vector<TransformSpec>& specs, RowSource& source, uint64_t seed,
                           const Resources& resources) {
  int64_t cols = source.info().cols;
  TransformChain chain;
  for (size_t s = 0; s < specs.size(); ++s) {
    const uint64_t own_seed = seed + 0x9E3779B97F4A7C15u * s;  // two rotations are two
    std::unique_ptr<TrainingRows> rows;
    if (needs_rows(specs[s].kind)) {
      if (source.rows() == 0)
        throw InvalidArgument("a transform cannot be trained on no rows; there must be at least one");
      rows = std::make_unique<TrainingRows>(source, chain, most_rows(specs[s].kind, cols), own_seed, resources);
    }
    for (TransformParts& part : train_step(specs[s], rows.get(), cols, own_seed, resources)) {
      cols = part.out;
      chain = chain.then(std::make_shared<const Transform>(std::move(part), resources));
    }
  }
  return chain;
}

Footprint step_footprint(const TransformSpec& spec, const TrainingRowsShape& shape, const Resources& resources) {
  const int64_t out = transformed_cols(spec, shape.cols);
  switch (spec.kind) {
    case TransformKind::pca: return principal_axes_footprint(shape, resources);
    case TransformKind::centring: return column_means_footprint(shape, resources);
    case TransformKind::random_rotation: return random_rotation_footprint(shape.cols, out);
    case TransformKind::opq: return optimized_rotation_footprint(shape, {out, spec.parts}, resources);
    case TransformKind::unit_length:
    case TransformKind::padding: break;
  }
  return {};
}

}  // namespace

Footprint transform_training_footprint(const std::vector<TransformSpec>& specs, const RowsInfo& rows,
                                       const Resources& resources) {
  std::deque<TransformParts> made;  // by the steps so far
  TrainingRowsShape shape{0, rows.cols, rows.cols};
  Footprint held;
  Footprint most;
  for (const TransformSpec& spec : specs) {
    if (needs_rows(spec.kind)) {
      shape.rows = std::min(rows.rows, most_rows(spec.kind, shape.cols));
      if (shape.rows < rows.rows) most = most.then(held.beside(sample_footprint(rows.rows)));
    }
    most = most.then(held.beside(step_footprint(spec, shape, resources)));
    for (TransformParts& part : shapes_of(spec, shape.cols)) {
      most = most.then(held.beside(Transform::footprint(part.kind, part.in, part.out, resources)));
      held = held.beside(Transform::held(part.kind, part.in, part.out));
      shape.cols = part.out;
      shape.before.push_back(&made.emplace_back(std::move(part)));
    }
  }
  return most.beside({0, rows.space.host_readable() ? 0 : kGatherBytes});
}

TransformChain train_transforms(const std::vector<TransformSpec>& specs, RowSource& source, uint64_t seed,
                                const Resources& resources) {
  const DefaultFloatMode mode;
  (void)transformed_cols(specs, source.info().cols);
  return within_limits(
      "training the transform", resources,
      [&] { return transform_training_footprint(specs, source.info(), resources); },
      [&] { return train_steps(specs, source, seed, resources); });
}

}  // namespace kith
