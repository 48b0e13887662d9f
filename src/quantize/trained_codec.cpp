#include "quantize/trained_codec.hpp"

#include <kith/error.hpp>
#include <kith/metric.hpp>
#include <kith/refused_row.hpp>

#include "cluster/data/kmeans_checks.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/knn_checks.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_blocks.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace kith {
namespace {

// One query against all codewords of a part, or of a book, whose codewords have all columns.
void fill_part(const CodecView& codec, int64_t part, const float* query, bool products, const uint32_t* every,
               float* out) {
  const CodeFormat& format = codec.format;
  const int64_t count = format.codewords();
  const bool additive = format.adds_codewords();
  const int64_t cols = additive ? format.cols : format.part_cols();
  const MatrixView words(codec.codewords + part * count * cols, count, cols);
  const KeyKind kind = products ? KeyKind::inner_product : KeyKind::squared_l2;
  canonical_keys_cpu(kind, {additive ? query : query + part * cols, 0.0}, words, every, count, out);
  for (int64_t k = 0; products && k < count; ++k) out[k] = 0.0f - out[k];
}

// One value against all values that its column's codes decode to.
void fill_column(const CodecView& codec, int64_t column, float query, bool products, float* out) {
  for (int64_t code = 0; code < codec.format.codewords(); ++code) {
    const float value = std::fma(static_cast<float>(code), codec.steps[column], codec.bases[column]);
    const double q = static_cast<double>(query);
    const double apart = q - static_cast<double>(value);
    out[code] = static_cast<float>(products ? q * static_cast<double>(value) : apart * apart);
  }
}

// Entries per query: parts or columns, times 2^bits. Unsupported for stored values, which have too many codes.
int64_t lookup_entries(const CodeFormat& format) {
  if (format.stores_values()) {
    throw Unsupported(
        fmt::format("values stored as {} have no lookup table; use 8 bits or fewer", name_of(format.dtype)));
  }
  return (format.steps_columns() ? format.cols : format.parts) * format.codewords();
}

// The contribution of every sub-code to the distance between a query and a code: tables of asymmetric distances (Jegou
// et al., 2011, section III), canonical values rounded once to f32.
//
// f32, queries x lookup_entries, in host memory. Squared distances or inner products: other metrics are not sums and
// are InvalidArgument. Squared distances of additive codes are not sums either, and Unsupported.
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
  if (metric == Metric::sqeuclidean && format.adds_codewords()) {
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
  const auto fill_one = [&](int64_t i, int64_t, int slot) {
    float* const query = scratch.data() + slot * format.cols;
    widen_row(queries, i, query);
    auto* to = typed_row<float>(out, i);
    const bool by_column = format.steps_columns();
    for (int64_t p = 0; p < (by_column ? format.cols : format.parts); ++p, to += format.codewords()) {
      by_column ? fill_column(view, p, query[p], products, to) : fill_part(view, p, query, products, every.data(), to);
    }
  };
  for_row_blocks("lookup tables", queries.rows(), resources, fill_one, 1);
}

// InvalidArgument that names the row for a NaN or an infinity. Opens the source.
void refuse_not_finite_rows(RowSource& source, const Resources& resources) {
  constexpr int64_t kPieceBytes = int64_t{16} << 20;  // of a file, at a time
  const RowsInfo info = source.info();
  if (info.rows == 0 || info.dtype == DType::u8 || info.dtype == DType::i8) return;
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / 2);  // there are two
  const int64_t most = info.in_memory ? info.rows : std::max<int64_t>(1, bytes / info.row_bytes());
  source.open(std::min(most, info.rows), resources);
  ProgressMeter meter("check", info.rows, resources);
  for (int64_t first = 0; first < info.rows;) {
    const int64_t count = std::min({most, info.rows - first, source.together(first)});
    const int64_t bad = first_not_finite(source.fetch(first, count), resources);
    if (bad >= 0) {
      throw RefusedRow("data", first + bad,
                       "holds a NaN or an infinity; remove it, or make the quantizer with check_finite = false");
    }
    meter.add(count);
    meter.poll();
    first += count;
  }
  meter.finish();
}

void check_codes(const MatrixView& codes, int64_t rows, const CodeFormat& format) {
  if (codes.dtype() != DType::u8 || codes.rows() != rows || codes.cols() != format.bytes()) {
    throw InvalidArgument(fmt::format("the codes are {} x {} {}; they must be {} x {} u8", codes.rows(), codes.cols(),
                                      name_of(codes.dtype()), rows, format.bytes()));
  }
}

}  // namespace

VectorQuantizer::VectorQuantizer(std::unique_ptr<TrainedCodec> codec) : codec_(std::move(codec)) {}
VectorQuantizer::~VectorQuantizer() = default;
VectorQuantizer::VectorQuantizer(VectorQuantizer&&) noexcept = default;
VectorQuantizer& VectorQuantizer::operator=(VectorQuantizer&&) noexcept = default;

bool VectorQuantizer::trained() const { return codec_->trained.find() != nullptr; }
std::vector<float> VectorQuantizer::values() const { return codec_->codec()->values(); }

int64_t VectorQuantizer::dimension() const {
  const auto trained = codec_->trained.find();
  return trained == nullptr ? 0 : trained->codec->format().cols;
}
int64_t VectorQuantizer::code_bytes() const {
  const auto trained = codec_->trained.find();
  return trained == nullptr ? 0 : trained->codec->format().bytes();
}

void VectorQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const {
  codec_->encode(rows, codes, resources);
}

void TrainedCodec::train(RowSource& rows, const Resources& given) {
  const Resources resources = given.parts() > 1 ? given.with_device(given.device()) : given;  // the first device
  TrainedValues made;
  try {
    std::shared_ptr<const Codec> codec = Codec::train(recipe, rows, seed, made, resources);
    trained.publish(Trained{std::move(codec), std::move(made.history)});
  } catch (const Cancelled&) {
    if (!made.values.empty()) {
      trained.publish(
          Trained{Codec::from_parts(recipe, rows.info().cols, std::move(made.values)), std::move(made.history)});
    }
    throw;
  }
}

void VectorQuantizer::train(const MatrixView& rows, const Resources& resources) {
  const DefaultFloatMode mode;
  (void)codec_->recipe.format_for(rows.cols());
  if (is_narrowed(rows)) {
    return with_narrowed("training", "x", rows, nullptr, OfRounding::warns, resources,
                         [&](const MatrixView& read, const Resources& used) { train(read, used); });
  }
  const auto least = [&] { return Codec::training_footprint(codec_->recipe, RowsInfo(rows), resources); };
  within_limits("training", resources, least, [&] {
    ViewSource source(rows);
    if (codec_->check_finite) refuse_not_finite_rows(source, resources);
    codec_->train(source, resources);
  });
}

void VectorQuantizer::train(const VectorFile& rows, const Resources& resources) {
  const DefaultFloatMode mode;
  (void)codec_->recipe.format_for(rows.cols());
  const auto least = [&] {
    const Footprint training = Codec::training_footprint(codec_->recipe, RowsInfo(rows), resources);
    return Footprint{rows.memory_bytes()}.beside(training.then({RowsInfo(rows).read_bytes(1)}));
  };
  within_limits("training", resources, least, [&] {
    const ReadMemory memory = rows.reserve_memory(resources);
    naming_files({{"data", rows}, {"training", rows}}, [&] {
      if (codec_->check_finite) {
        FileSource checked(rows);
        refuse_not_finite_rows(checked, resources);
      }
      FileSource source(rows);
      codec_->train(source, resources);
    });
  });
}

void VectorQuantizer::set_values(int64_t dimension, const VectorView<const float>& values) {
  codec_->trained.publish(
      TrainedCodec::Trained{Codec::from_parts(codec_->recipe, dimension, {values.data, values.data + values.size}), {}});
}

void TrainedCodec::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
                          const LocalSearchEncoding* how) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const Codec> codec = this->codec();
  check_codes(codes, rows.rows(), codec->format());
  if (codes.row_stride() != codes.cols() && rows.rows() > 1 && !recipe.code->codes_apart()) {
    throw InvalidArgument(fmt::format("codes lie {} bytes apart; they must follow each other, {} bytes each",
                                      codes.row_stride(), codes.cols()));
  }
  if (is_narrowed(rows)) {
    return with_narrowed("the codes", "x", rows, nullptr, OfRounding::warns, resources,
                         [&](const MatrixView& read, const Resources& used) { encode(read, codes, used, how); });
  }
  within_limits("the codes", resources, [&](const Resources& used) {
    ViewSource source(rows);
    if (checks_values(used)) refuse_not_finite_rows(source, used);
    codec->encode(rows, codes, used, how);
  });
}

void VectorQuantizer::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  const std::shared_ptr<const Codec> codec = codec_->codec();
  check_codes(codes, codes.rows(), codec->format());
  within_limits("the decoded vectors", resources, [&](const Resources& used) {
    refuse_unused_bits(codes, codec->format(), used);
    codec->decode(codes, out, used);
  });
}

void VectorQuantizer::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                   const Resources& resources) const {
  const DefaultFloatMode mode;
  if (is_narrowed(queries)) {
    return with_narrowed("the tables", "queries", queries, nullptr, OfRounding::silent, resources,
                         [&](const MatrixView& read, const Resources& used) { lookup_table(read, metric, out, used); });
  }
  const std::shared_ptr<const Codec> codec = codec_->codec();
  within_limits("the tables", resources, [&](const Resources& used) {
    ViewSource source(queries);
    if (codec_->checks_values(used)) refuse_not_finite_rows(source, used);
    fill_lookup_table(*codec, queries, metric, out, used);
  });
}

}  // namespace kith
