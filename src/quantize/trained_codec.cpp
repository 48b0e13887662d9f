#include "quantize/trained_codec.hpp"

#include <kith/error.hpp>

#include "cluster/data/kmeans_checks.hpp"
#include "core/float_mode.hpp"
#include "core/within_limits.hpp"
#include "core/parallel_for.hpp"
#include "quantize/lookup_table.hpp"
#include "quantize/unused_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// InvalidArgument, naming the row, for a NaN or an infinity. Opens the source.
void refuse_not_finite_rows(RowSource& source, const Resources& resources) {
  constexpr int64_t kPieceBytes = int64_t{16} << 20;  // of a file, at a time
  const RowsInfo info = source.info();
  if (info.rows == 0 || info.dtype == DType::u8 || info.dtype == DType::i8) return;
  const int64_t most = info.in_memory ? info.rows : std::max<int64_t>(1, kPieceBytes / info.row_bytes());
  source.open(std::min(most, info.rows), resources);
  ProgressMeter meter("check", info.rows, resources);
  for (int64_t first = 0; first < info.rows;) {
    const int64_t count = std::min({most, info.rows - first, source.together(first)});
    const int64_t bad = first_not_finite(source.fetch(first, count), meter, resources);
    if (bad >= 0) {
      throw InvalidArgument(fmt::format(
          "data row {} holds a NaN or an infinity; remove it, or make the quantizer with check_finite = false",
          first + bad));
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

Footprint training_footprint(const CodeRecipe& recipe, const RowsInfo& rows, const Resources& resources) {
  return {Codec::training_bytes(recipe, rows, resources.threads())};
}

}  // namespace

void TrainedCodec::train(RowSource& rows, const Resources& resources) {
  TrainedValues made;
  try {
    std::shared_ptr<const Codec> codec = Codec::train(recipe_, rows, seed_, made, resources);
    trained_.publish(Trained{std::move(codec), std::move(made.history)});
  } catch (const Cancelled&) {
    if (!made.values.empty()) {
      trained_.publish(
          Trained{Codec::from_parts(recipe_, rows.info().cols, std::move(made.values)), std::move(made.history)});
    }
    throw;
  }
}

void TrainedCodec::train(const MatrixView& rows, const Resources& resources) {
  const DefaultFloatMode mode;
  (void)recipe_.format_for(rows.cols());
  ViewSource source(rows);
  if (checks_values(resources)) refuse_not_finite_rows(source, resources);
  within_limits(
      "training", resources, [&] { return training_footprint(recipe_, RowsInfo(rows), resources); },
      [&] { train(source, resources); });
}

void TrainedCodec::train(const VectorFile& rows, const Resources& resources) {
  const DefaultFloatMode mode;
  (void)recipe_.format_for(rows.cols());
  const auto least = [&] {
    return Footprint{rows.memory_bytes()}.beside(training_footprint(recipe_, RowsInfo(rows), resources));
  };
  within_limits("training", resources, least, [&] {
    const ReadMemory memory = rows.reserve_memory(resources);
    if (check_finite_) {
      FileSource checked(rows);
      refuse_not_finite_rows(checked, resources);
    }
    FileSource source(rows);
    train(source, resources);
  });
}

void TrainedCodec::set_values(int64_t cols, const VectorView<const float>& values) {
  trained_.publish(Trained{Codec::from_parts(recipe_, cols, {values.data, values.data + values.size}), {}});
}

void TrainedCodec::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
                          const LocalSearchEncoding* how) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const Codec> codec = get()->codec;
  check_codes(codes, rows.rows(), codec->format());
  if (codes.row_stride() != codes.cols() && rows.rows() > 1 && !recipe_.code->codes_apart()) {
    throw InvalidArgument(fmt::format("codes lie {} bytes apart; they must follow each other, {} bytes each",
                                      codes.row_stride(), codes.cols()));
  }
  ViewSource source(rows);
  if (checks_values(resources)) refuse_not_finite_rows(source, resources);
  const auto least = [&] {
    const bool on_gpu = resources.device().kind == DeviceKind::cuda || !rows.space().host_readable();
    return on_gpu ? Footprint() : Footprint{codec->encoding_bytes(rows.rows(), rows.dtype(), resources.threads())};
  };
  within_limits("the codes", resources, least, [&] { codec->encode(rows, codes, resources, how); });
}

void TrainedCodec::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  const std::shared_ptr<const Codec> codec = get()->codec;
  check_codes(codes, codes.rows(), codec->format());
  refuse_unused_bits(codes, codec->format(), resources);
  within_limits(
      "the decoded vectors", resources, [] { return Footprint(); }, [&] { codec->decode(codes, out, resources); });
}

void TrainedCodec::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                const Resources& resources) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const Codec> codec = get()->codec;
  ViewSource source(queries);
  if (checks_values(resources)) refuse_not_finite_rows(source, resources);
  fill_lookup_table(*codec, queries, metric, out, resources);
}

}  // namespace kith
