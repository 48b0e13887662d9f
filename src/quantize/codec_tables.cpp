#include "quantize/codec_tables.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/norm_levels.hpp"
#include "quantize/scalar_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace kith {
namespace {

void check_bits(const CodeSpec& spec) {
  if (spec.kind == CodeKind::additive) {
    if (spec.bits >= 1 && spec.bits <= 8) return;
    throw InvalidArgument(fmt::format("bits = {}; an additive code has 1 to 8 bits a codebook", spec.bits));
  }
  const bool scalar = spec.kind == CodeKind::scalar;
  const bool known = scalar ? spec.bits == 4 || spec.bits == 6 || spec.bits == 8 : spec.bits >= 4 && spec.bits <= 8;
  if (known) return;
  throw InvalidArgument(scalar ? fmt::format("bits = {}; a scalar code has 4, 6 or 8 bits a value", spec.bits)
                               : fmt::format("bits = {}; a product code has 4 to 8 bits a sub-vector", spec.bits));
}

// The divisors of cols on either side of what was asked for.
std::string near_divisors(int64_t cols, int64_t parts) {
  int64_t below = std::min(parts, cols);
  while (below > 1 && cols % below != 0) --below;
  int64_t above = std::clamp<int64_t>(parts, 1, cols);
  while (cols % above != 0) ++above;
  return below == above || below < 1 ? std::to_string(above) : fmt::format("{} or {}", below, above);
}

void check_parts(int64_t parts, int64_t cols) {
  if (parts >= 1 && parts <= cols && cols % parts == 0) return;
  throw InvalidArgument(
      fmt::format("{} sub-vectors do not divide {} columns; take {}, or a transform to other columns (OPQ, PCA)", parts,
                  cols, near_divisors(cols, parts)));
}

void check_additive(const CodeSpec& spec) {
  if (spec.parts < 1 || spec.parts > kMostCodebooks) {
    throw InvalidArgument(fmt::format("{} codebooks; an additive code has 1 to {}", spec.parts, kMostCodebooks));
  }
  const bool beam = spec.search == AdditiveSearch::beam;
  if (beam ? spec.effort >= 1 && spec.effort <= kMostBeam : spec.effort >= 0) return;
  throw InvalidArgument(beam ? fmt::format("a beam of {} paths; it has 1 to {}", spec.effort, kMostBeam)
                             : fmt::format("{} rounds of local search; give 0 or more", spec.effort));
}

int64_t value_count(const CodeFormat& format) {
  switch (format.kind) {
    case CodeKind::stored: return 0;
    case CodeKind::scalar: return 2 * format.cols;
    case CodeKind::additive: return format.parts * format.codewords() * format.cols + norm_value_count(format.norm);
    default: return format.codewords() * format.cols;
  }
}

}  // namespace

void CodeSpec::validate() const {
  if (kind == CodeKind::stored) return;
  check_bits(*this);
  if (kind == CodeKind::additive) check_additive(*this);
  if (kind == CodeKind::product && parts < 1) {
    throw InvalidArgument(fmt::format("parts = {}; a vector has at least 1 sub-vector", parts));
  }
}

CodeFormat CodeSpec::format_for(int64_t cols) const {
  if (cols < 1) throw InvalidArgument("the rows have no columns");
  CodeFormat format;
  format.kind = kind;
  format.cols = cols;
  if (kind == CodeKind::stored) {
    format.dtype = dtype;
    return format;
  }
  check_bits(*this);
  format.bits = bits;
  if (kind == CodeKind::product) {
    check_parts(parts, cols);
    format.parts = parts;
  }
  if (kind == CodeKind::additive) {
    check_additive(*this);
    format.parts = parts;
    format.search = search;
    format.effort = effort;
    format.norm = norm;
  }
  return format;
}

double compared_codewords(const CodeFormat& format) {
  constexpr double kSweeps = 4;  // of a round of local search
  const auto words = static_cast<double>(format.codewords());
  switch (format.kind) {
    case CodeKind::product: return words;
    case CodeKind::additive:
      return words * static_cast<double>(format.parts) * static_cast<double>(format.effort) *
             (format.search == AdditiveSearch::local ? kSweeps : 1);
    default: return 1;
  }
}

CodecTables::CodecTables(const CodeFormat& given, std::vector<float> trained)
    : format(CodeSpec{given.kind, given.dtype, given.bits, given.parts, given.search, given.effort,
                      given.norm}
                 .format_for(given.cols)),
      values(std::move(trained)) {
  const int64_t wanted = value_count(format);
  if (static_cast<int64_t>(values.size()) != wanted) {
    throw InvalidArgument(
        fmt::format("{} trained values; codes of {} columns need {}", values.size(), format.cols, wanted));
  }
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    throw InvalidArgument(fmt::format("trained value {} is {}; it must be finite", bad - values.begin(), *bad));
  }
  if (format.kind == CodeKind::scalar) {
    for (int64_t c = 0; c < format.cols; ++c) {
      bases.push_back(scalar_base(leasts()[c], spans()[c], format.bits));
      steps.push_back(scalar_step(spans()[c], format.bits));
    }
  } else if (format.kind == CodeKind::additive) {
    levels = norm_levels(format, values);
  } else if (format.kind == CodeKind::product) {
    nearest.resize(static_cast<size_t>(format.parts));
    const int64_t part_values = format.codewords() * format.part_cols();
    for (int64_t p = 0; p < format.parts; ++p) {
      nearest[static_cast<size_t>(p)].set(values.data() + p * part_values, format.codewords(), format.part_cols());
    }
  }
}

CodecView CodecTables::view() const {
  const bool words = format.kind == CodeKind::product || format.kind == CodeKind::additive;
  return {format, bases.data(), steps.data(), words ? values.data() : nullptr, levels.data()};
}

int64_t CodecTables::bytes_for(const CodeFormat& format) {
  const int64_t values = array_bytes<float>(value_count(format));
  if (format.kind != CodeKind::product) return 2 * values + array_bytes<float>(kNormLevels);
  return values + format.parts * NearestCodeword::bytes_for(format.codewords(), format.part_cols());
}

int64_t CodecTables::bytes() const {
  int64_t total = array_bytes<float>(static_cast<int64_t>(values.size() + levels.size() + 2 * bases.size()));
  for (const NearestCodeword& part : nearest) total += part.bytes();
  return total;
}

}  // namespace kith
