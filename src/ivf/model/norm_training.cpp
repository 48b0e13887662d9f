#include "ivf/model/norm_training.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "quantize/additive/code_norms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kPieceRows = 1 << 12;

struct NormMemory {
  NormMemory(int64_t rows, int64_t piece_bytes, const Resources& resources)
      : norms(rows, "norms", resources), codes(piece_bytes, "codes", resources) {}

  HostArray<float> norms;
  HostArray<uint8_t> codes;  // codes of a piece of rows
};

}  // namespace

void check_norm_metric(CodeNorm norm, Metric metric) {
  if (norm != CodeNorm::none || metric == Metric::inner_product) return;
  throw InvalidArgument(fmt::format(
      "codes without norms (_Nnone) by {}; they serve inner_product alone: take another suffix (_Ncqint8, _Nqint8, "
      "_Nfloat), or none, which goes by the decoded vectors",
      name_of(metric)));
}

Footprint norm_training_footprint(const CodeRecipe& code, const RowsInfo& rows, const Resources& resources) {
  CodeRecipe without = code;
  without.norm = CodeNorm::decoded;
  const CodeFormat format = without.format_for(rows.cols);
  const int64_t piece = std::min(rows.rows, kPieceRows);
  return code.code->tables_footprint(code.format_for(rows.cols))
      .times(2)
      .beside(code.code->encoding_footprint(code, format, {piece, rows.cols, DType::f32}, resources))
      .beside(footprint_of<NormMemory>(resources, rows.rows, piece * format.bytes()))
      .beside(array_footprint<float>(piece, rows.cols));
}

std::shared_ptr<const Codec> with_norms(const std::shared_ptr<const Codec>& codec, CodeNorm norm, RowSource& rows,
                                        const int32_t* lists, const MatrixView& centres, const Resources& resources) {
  CodeRecipe recipe = codec->recipe();
  recipe.norm = norm;
  std::vector<float> values = codec->values();
  if (norm_value_count(norm) > 0) {
    constexpr int64_t kTaskRows = 256;
    const Resources quiet = resources.with_progress({});
    const int64_t count = rows.rows();
    const int64_t piece = std::min(count, kPieceRows);
    const int64_t bytes = codec->format().bytes();
    const NormMemory memory(count, piece * bytes, resources);
    const HostArray<float>& norms = memory.norms;
    const HostArray<uint8_t>& codes = memory.codes;
    rows.open(piece, quiet);
    ProgressMeter meter("norms", count, resources);
    for (int64_t first = 0; first < count; first += piece) {
      const MatrixView some = rows.fetch(first, std::min(piece, count - first));
      codec->encode(some, codes.data(), quiet);
      parallel_for(divide_up(some.rows(), kTaskRows), meter, quiet, [&](int64_t task, int) {
        for (int64_t i = task * kTaskRows; i < std::min((task + 1) * kTaskRows, some.rows()); ++i) {
          const float* const centre = lists == nullptr ? nullptr : typed_row<float>(centres, lists[first + i]);
          decoded_norms(codec->view(), codes.data() + i * bytes, 1, centre, norms.data() + first + i);
        }
      });
      meter.add(some.rows());
      meter.poll();
    }
    meter.finish();
    const std::vector<float> trained = train_norm_values(norm, {norms.begin(), norms.end()});
    values.insert(values.end(), trained.begin(), trained.end());
  }
  return Codec::from_parts(recipe, codec->format().cols, std::move(values), resources);
}

}  // namespace kith
