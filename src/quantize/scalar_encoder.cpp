// Scalar codes: training finds the smallest value and the range of each column, in one pass over all rows. A value is
// rounded down to one of 2^bits - 1 steps, and decoded as the middle of its step. NaN has code 0.
//
// A SIMD vector of columns is encoded at a time, then the bits are packed. Cost: reading the rows, writing the codes,
// and a division per value.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/scalar_encoder.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <kith/quantizer.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "io/container/words.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/codes/scalar_code.hpp"
#include "quantize/codec.hpp"
#include "quantize/encode_blocks.hpp"
#include "quantize/name_part.hpp"
#include "rows/load_cpu-inl.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I32 = hn::ScalableTag<int32_t>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

// scalar_code() of each value of a row, one per byte.
template <bool kCorrects>
HWY_INLINE void quantize_row(const float* row, const float* leasts, const float* spans, int64_t cols, int bits,
                             uint8_t* out) {
  const F32 d;
  const I32 di;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0f);
  const auto levels = hn::Set(d, static_cast<float>(scalar_levels(bits)));
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) {
    const auto span = hn::LoadU(d, spans + c);
    auto t = hn::Div(hn::Sub(hn::LoadU(d, row + c), hn::LoadU(d, leasts + c)), span);
    t = hn::IfThenElseZero(hn::And(hn::Gt(t, zero), hn::Ne(span, zero)), hn::Min(t, one));
    auto code = hn::ConvertTo(di, hn::Mul(t, levels));
    if constexpr (kCorrects) {
      const auto whole = hn::ConvertTo(d, code);
      const auto above = hn::Lt(hn::Sub(hn::Mul(t, hn::Add(levels, one)), whole), t);
      const auto lower = hn::And(hn::RebindMask(di, above), hn::Gt(code, hn::Zero(di)));
      code = hn::Sub(code, hn::IfThenElseZero(lower, hn::Set(di, 1)));
    }
    hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, F32>(), code), hn::Rebind<uint8_t, F32>(), out + c);
  }
  for (; c < cols; ++c) out[c] = static_cast<uint8_t>(scalar_code(row[c], leasts[c], spans[c], bits));
}

void EncodeScalar(const CodeFormat& format, const float* leasts, const float* spans, const float* rows, int64_t stride,
                  int64_t count, uint8_t* codes, uint8_t* scratch) {
  const int64_t bytes = format.bytes();
  for (int64_t i = 0; i < count; ++i, codes += bytes) {
    if (format.bits == 8) {
      quantize_row<false>(rows + i * stride, leasts, spans, format.cols, 8, codes);
    } else {
      quantize_row<true>(rows + i * stride, leasts, spans, format.cols, format.bits, scratch);
      pack_sub_codes(scratch, format.cols, format.bits, codes);
    }
  }
}

HWY_INLINE void widen_range(const float* row, int64_t cols, float* leasts, float* largests) {
  const F32 d;
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) {
    const auto value = hn::LoadU(d, row + c);
    const auto least = hn::LoadU(d, leasts + c);
    const auto largest = hn::LoadU(d, largests + c);
    hn::StoreU(hn::IfThenElse(hn::Lt(value, least), value, least), d, leasts + c);
    hn::StoreU(hn::IfThenElse(hn::Gt(value, largest), value, largest), d, largests + c);
  }
  for (; c < cols; ++c) {
    if (row[c] < leasts[c]) leasts[c] = row[c];
    if (row[c] > largests[c]) largests[c] = row[c];
  }
}

void WidenRanges(const float* rows, int64_t stride, int64_t count, int64_t cols, float* leasts, float* largests) {
  for (int64_t i = 0; i < count; ++i) widen_range(rows + i * stride, cols, leasts, largests);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(EncodeScalar);
HWY_EXPORT(WidenRanges);

namespace {

bool has_known_bits(const CodeRecipe& recipe) { return recipe.bits == 4 || recipe.bits == 6 || recipe.bits == 8; }

// The smallest values, then the ranges. InvalidArgument if a range overflows f32.
std::vector<float> train_scalar(RowSource& source, const Resources& resources) {
  constexpr int64_t kTaskRows = 1024;
  constexpr int64_t kPieceBytes = int64_t{16} << 20;  // of a file, at a time
  const RowsInfo info = source.info();
  const int64_t cols = info.cols;
  if (info.rows == 0) throw InvalidArgument("no rows to train on; give at least one");
  // Per thread: the smallest and the largest value of each column, and a row.
  const HostArray<float> found(resources.threads() * 3 * cols, "ranges of columns", resources);
  constexpr int64_t kShare = 4;  // of what the limit has left, for a piece of a file: there are two
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / kShare);
  const int64_t piece = info.in_memory ? info.rows : std::max<int64_t>(1, bytes / info.row_bytes());
  source.open(std::min(piece, info.rows), resources);
  const auto of_slot = [&](int64_t slot) { return found.data() + slot * 3 * cols; };
  for (int64_t slot = 0; slot < resources.threads(); ++slot) {
    std::fill_n(of_slot(slot), cols, HUGE_VALF);
    std::fill_n(of_slot(slot) + cols, cols, -HUGE_VALF);
  }
  ProgressMeter meter("train ranges", info.rows, resources);
  for (int64_t first = 0; first < info.rows;) {
    const int64_t count = std::min({piece, info.rows - first, source.together(first)});
    const MatrixView rows = source.fetch(first, count);
    first += count;
    if (!rows.space().host_readable()) {
      widen_ranges_cuda(rows, of_slot(0), of_slot(0) + cols, resources);
      meter.add(count);
      continue;
    }
    parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int slot) {
      const int64_t begin = task * kTaskRows;
      const int64_t end = std::min(count, begin + kTaskRows);
      float* const leasts = of_slot(slot);
      if (rows.dtype() == DType::f32) {
        const auto* const values = typed_row<float>(rows, begin);
        HWY_DYNAMIC_DISPATCH(WidenRanges)(values, rows.row_stride(), end - begin, cols, leasts, leasts + cols);
      } else {
        float* const row = leasts + 2 * cols;
        for (int64_t i = begin; i < end; ++i) {
          widen_row(rows, i, row);
          HWY_DYNAMIC_DISPATCH(WidenRanges)(row, cols, 1, cols, leasts, leasts + cols);
        }
      }
      meter.add(end - begin);
    });
  }
  meter.finish();
  std::vector<float> values(static_cast<size_t>(2 * cols));
  for (int64_t c = 0; c < cols; ++c) {
    float least = HUGE_VALF;
    float largest = -HUGE_VALF;
    for (int64_t slot = 0; slot < resources.threads(); ++slot) {
      least = std::min(least, of_slot(slot)[c]);
      largest = std::max(largest, of_slot(slot)[cols + c]);
    }
    const float span = largest - least;
    if (!std::isfinite(span)) {
      throw InvalidArgument(
          fmt::format("column {} goes from {} to {}, which is more than f32 holds; scale the rows down, or leave out "
                      "those that are not finite",
                      c, least, largest));
    }
    values[static_cast<size_t>(c)] = least + 0.0f;  // no negative zero, whichever came first
    values[static_cast<size_t>(cols + c)] = span;
  }
  return values;
}

class ScalarEncoder final : public CodeEncoder {
 public:
  constexpr ScalarEncoder() : CodeEncoder(CodeKind::scalar) {}

  std::string_view names() const override { return "SQ8, SQ6, SQ4"; }
  bool parse(NamePart& part, CodeRecipe& recipe) const override {
    NamePart rest = part;
    if (!rest.take("SQ") || !rest.at_number()) return false;
    recipe.bits = static_cast<int>(rest.number());
    if (!has_known_bits(recipe)) part.refuse(fmt::format("asks for {} bits; there are 8, 6, 4, and fp16", recipe.bits));
    part = rest;
    return true;
  }
  std::string name(const CodeRecipe& recipe) const override { return fmt::format("SQ{}", recipe.bits); }
  std::string text(const CodeRecipe& recipe, int64_t cols) const override {
    return fmt::format("scalar {} {}", cols, recipe.bits);
  }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const override {
    if (kind != "scalar") return false;
    cols = words.number<int64_t>();
    recipe.bits = words.number<int>();
    return true;
  }
  std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t, bool check_finite) const override {
    return ScalarQuantizer({recipe.bits, check_finite});
  }

  void validate(const CodeRecipe& recipe) const override {
    if (has_known_bits(recipe)) return;
    throw InvalidArgument(fmt::format("bits = {}; a scalar code has 4, 6 or 8 bits a value", recipe.bits));
  }
  CodeFormat format(const CodeRecipe& recipe, int64_t cols) const override {
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    validate(recipe);
    return {.kind = kind(), .cols = cols, .bits = recipe.bits};
  }
  std::vector<int64_t> shape(const CodeFormat& format) const override { return {2, format.cols}; }
  void make_tables(CodecTables& tables) const override {
    const CodeFormat& format = tables.format;
    for (int64_t c = 0; c < format.cols; ++c) {
      tables.bases.push_back(scalar_base(tables.leasts()[c], tables.spans()[c], format.bits));
      tables.steps.push_back(scalar_step(tables.spans()[c], format.bits));
    }
  }

  void train(const CodeRecipe&, RowSource& rows, uint64_t, TrainedValues& trained,
             const Resources& resources) const override {
    trained.values = train_scalar(rows, resources);
  }
  Footprint training_footprint(const CodeRecipe&, const RowsInfo& rows, const Resources& resources) const override {
    const Footprint here = array_footprint<float>(resources.threads() * 3, rows.cols).beside({rows.read_bytes(1)});
    if (rows.space.host_readable()) return here;
    const MatrixView there = rows.counted_view();
    std::vector<float> ranges(static_cast<size_t>(2 * rows.cols));
    return here.beside(counted(resources, [&](const Resources& used) {
      widen_ranges_cuda(there, ranges.data(), ranges.data() + rows.cols, used);
    }));
  }

  bool on_gpus() const override { return true; }
  void encode(const EncodeTask& task, const Resources& resources) const override {
    const CodecTables& codec = task.codec;
    encode_blocks(task, 0, resources,
                  [&](const float* rows, int64_t stride, int64_t count, uint8_t* codes, float*, uint8_t* bytes) {
                    HWY_DYNAMIC_DISPATCH(EncodeScalar)
                    (codec.format, codec.leasts(), codec.spans(), rows, stride, count, codes, bytes);
                  });
  }
  Footprint cpu_encoding_footprint(const CodeRecipe&, const CodeFormat& format, const RowsInfo& rows,
                                   const Resources& resources) const override {
    return footprint_of<BlockMemory>(resources, format, rows, 0);
  }
};

constexpr ScalarEncoder kScalarEncoder;

}  // namespace

const CodeEncoder* const kScalarCode = &kScalarEncoder;

}  // namespace kith
#endif
