#include "quantize/lookup_table.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "rows/knn_checks.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

namespace kith {
namespace {

// One query and all codewords of its part, or of a book, which are as long as the query.
void fill_part(const CodecView& codec, int64_t part, const float* query, bool products, const uint32_t* every,
               float* out) {
  const CodeFormat& format = codec.format;
  const int64_t count = format.codewords();
  const bool additive = format.kind == CodeKind::additive;
  const int64_t cols = additive ? format.cols : format.part_cols();
  const MatrixView words(codec.codewords + part * count * cols, count, cols);
  const KeyKind kind = products ? KeyKind::inner_product : KeyKind::squared_l2;
  canonical_keys_cpu(kind, {additive ? query : query + part * cols, 0.0}, words, every, count, out);
  for (int64_t k = 0; products && k < count; ++k) out[k] = 0.0f - out[k];
}

// One value and all that its column's codes stand for.
void fill_column(const CodecView& codec, int64_t column, float query, bool products, float* out) {
  for (int64_t code = 0; code < codec.format.codewords(); ++code) {
    const float value = std::fma(static_cast<float>(code), codec.steps[column], codec.bases[column]);
    const double q = static_cast<double>(query);
    const double apart = q - static_cast<double>(value);
    out[code] = static_cast<float>(products ? q * static_cast<double>(value) : apart * apart);
  }
}

}  // namespace

int64_t lookup_entries(const CodeFormat& format) {
  if (format.kind == CodeKind::stored) {
    throw Unsupported(
        fmt::format("values stored as {} have no lookup table; use 8 bits or fewer", name_of(format.dtype)));
  }
  return (format.kind == CodeKind::scalar ? format.cols : format.parts) * format.codewords();
}

void fill_lookup_table(const Codec& codec, const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                       const Resources& resources) {
  const DefaultFloatMode mode;
  const CodecView view = codec.view();
  const CodeFormat& format = view.format;
  const int64_t entries = lookup_entries(format);
  if (metric != Metric::sqeuclidean && metric != Metric::inner_product) {
    throw InvalidArgument(fmt::format("a lookup table of {}; it can be of sqeuclidean or inner_product, which are sums",
                                      name_of(metric)));
  }
  if (metric == Metric::sqeuclidean && format.kind == CodeKind::additive) {
    throw Unsupported(
        "squared distances to sums of codewords are no sums; take the table of inner_product, and |x|^2 of the decoded "
        "vectors");
  }
  if (queries.cols() != format.cols) {
    throw InvalidArgument(fmt::format("the queries have {} columns; the code is of {}", queries.cols(), format.cols));
  }
  if (out.dtype() != DType::f32 || out.rows() != queries.rows() || out.cols() != entries) {
    throw InvalidArgument(fmt::format("the output is {} x {} {}; it must be {} x {} f32", out.rows(), out.cols(),
                                      name_of(out.dtype()), queries.rows(), entries));
  }
  check_host_readable("queries", queries);
  check_host_readable("outputs", out);
  const bool products = metric == Metric::inner_product;
  const HostArray<float> scratch(resources.threads() * format.cols, "a query", resources);
  std::vector<uint32_t> every(static_cast<size_t>(format.codewords()));
  std::iota(every.begin(), every.end(), 0u);
  ProgressMeter meter("lookup tables", queries.rows(), resources);
  parallel_for(queries.rows(), meter, resources, [&](int64_t i, int slot) {
    float* const query = scratch.data() + slot * format.cols;
    widen_row(queries, i, query);
    auto* to = typed_row<float>(out, i);
    const bool by_column = format.kind == CodeKind::scalar;
    for (int64_t p = 0; p < (by_column ? format.cols : format.parts); ++p, to += format.codewords()) {
      by_column ? fill_column(view, p, query[p], products, to)
                : fill_part(view, p, query, products, every.data(), to);
    }
    meter.add(1);
  });
  meter.finish();
}

}  // namespace kith
