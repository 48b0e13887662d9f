#include "quantize/codec.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "cuda/resolve_device.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "ranks/parts.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace kith {
namespace {

// The device that encodes or decodes; of the two matrices one is small.
Device resolve_codec_device(const CodeRecipe& recipe, const MatrixView& rows, MemorySpace other,
                            const std::function<bool(Device)>& fits, const Resources& resources) {
  const auto values = static_cast<double>(rows.rows() * rows.cols());
  return choose_device({"a codec", [&] { return fmt::format("codes of {} x {} vectors", rows.rows(), rows.cols()); }},
                       {rows.space(), other},
                       {{CostUnit::f32_product, 2.0 * values * recipe.code->compared_codewords(recipe)},
                        {CostUnit::copied_byte, values * static_cast<double>(size_of(rows.dtype()))}},
                       fits, resources);
}

void decode_cpu(const CodecView& codec, const MatrixView& codes, const MutableMatrixView& out,
                const Resources& resources) {
  constexpr int64_t kTaskRows = 512;
  const int64_t count = codes.rows();
  const bool together = codes.row_stride() == codec.format.bytes() && out.row_stride() == codec.format.cols;
  const auto decode_some = [&](int64_t first, int64_t end) {
    const int64_t step = together ? end - first : 1;
    for (int64_t i = first; i < end; i += step) {
      decode_rows_cpu(codec, typed_row<uint8_t>(codes, i), step, nullptr, typed_row<float>(out, i));
    }
  };
  for_row_blocks("decode", count, resources, decode_some, kTaskRows);
}

}  // namespace

std::shared_ptr<const Codec> Codec::from_parts(const CodeRecipe& recipe, int64_t cols, std::vector<float> values,
                                               const Resources& resources) {
  return std::make_shared<const Codec>(recipe, cols, std::move(values), resources);
}

std::shared_ptr<const Codec> Codec::from_parts(const CodeFormat& format, std::vector<float> values,
                                               const Resources& resources) {
  return from_parts(recipe_of(format), format.cols, std::move(values), resources);
}

std::shared_ptr<const Codec> Codec::train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed,
                                          TrainedValues& trained, const Resources& resources) {
  const DefaultFloatMode mode;
  const int64_t cols = rows.info().cols;
  if (recipe.format_for(cols).has_levels()) {
    throw InvalidArgument("levels of norms are trained with the lists of an index");
  }
  recipe.code->train(recipe, rows, seed, trained, resources);
  return from_parts(recipe, cols, std::move(trained.values), resources);
}

std::shared_ptr<const Codec> Codec::train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed,
                                          const Resources& resources) {
  TrainedValues trained;
  return train(recipe, rows, seed, trained, resources);
}

std::shared_ptr<const Codec> Codec::train(const CodeRecipe& recipe, const MatrixView& rows, uint64_t seed,
                                          const Resources& resources) {
  ViewSource source(rows);
  return train(recipe, source, seed, resources);
}

void Codec::encode(const MatrixView& rows, uint8_t* codes, const Resources& resources) const {
  encode(rows, MutableMatrixView(codes, rows.rows(), format().bytes()), resources);
}

void Codec::decode(const uint8_t* codes, int64_t count, const MutableMatrixView& out,
                   const Resources& resources) const {
  decode(MatrixView(codes, count, format().bytes()), out, resources);
}

namespace {

// Parts share the rows: a row's code depends only on its values, and for some recipes on its number.
void encode_on_parts(const Codec& codec, const MatrixView& rows, const MutableMatrixView& codes,
                     const Resources& resources, const LocalSearchEncoding* how) {
  share_out(rows.rows(), 1, resources, [&](RankPart share, const Resources& part) {
    LocalSearchEncoding own;
    own.rounds = codec.recipe().effort;
    if (how != nullptr) own = *how;
    own.first_row += share.first;
    const bool by_number = how != nullptr || !codec.recipe().draws_by_content;
    codec.encode(rows.slice(share.first, share.count), codes.slice(share.first, share.count), part,
                 by_number ? &own : nullptr);
  });
}

}  // namespace

Device Codec::encoding_device(const MatrixView& rows, const LocalSearchEncoding* how, const Resources& resources) const {
  CodeRecipe chosen = recipe();
  if (how != nullptr) chosen.effort = static_cast<int>(std::min<int64_t>(how->rounds, INT32_MAX));
  return resolve_codec_device(chosen, rows, {}, [&](Device) { return recipe().code->on_gpus(); }, resources);
}

void Codec::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources,
                   const LocalSearchEncoding* how) const {
  const DefaultFloatMode mode;
  if (rows.cols() != format().cols) {
    throw InvalidArgument(fmt::format("the rows have {} columns; the code is of {}", rows.cols(), format().cols));
  }
  if (rows.rows() == 0) return;
  if (is_shared(resources) && rows.space().host_readable() && codes.space().host_readable()) {
    return encode_on_parts(*this, rows, codes, resources, how);
  }
  CodeRecipe chosen = recipe();
  if (how != nullptr) chosen.effort = static_cast<int>(std::min<int64_t>(how->rounds, INT32_MAX));
  const EncodeTask task{tables_, rows, codes, how};
  const CodeEncoder& code = *recipe().code;
  const auto fits = [&](Device gpu) {
    if (!code.on_gpus() || counts_only(resources)) return false;  // the CPU takes the least memory
    const auto encode_there = [&](const Resources& used) { code.encode_on_gpu(task, gpu.index, used); };
    return !counts_memory(resources) || has_room_for(counted(resources, encode_there), resources);
  };
  dispatch(
      resolve_codec_device(chosen, rows, codes.space(), fits, resources),
      [&] {
        if (!counts_only(resources)) return code.encode(task, resources);
        count_work(encoding_footprint(RowsInfo(rows), resources.with_device(Device::cpu())), resources);
      },
      [&](int device) { code.encode_on_gpu(task, device, resources); });
}

void Codec::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  const DefaultFloatMode mode;
  if (out.dtype() != DType::f32 || out.rows() != codes.rows() || out.cols() != format().cols) {
    throw InvalidArgument(fmt::format("the output is {} x {} {}; it must be {} x {} f32", out.rows(), out.cols(),
                                      name_of(out.dtype()), codes.rows(), format().cols));
  }
  if (codes.rows() == 0) return;
  // Decoding is a copy here; not worth starting a GPU.
  const bool on_host = out.space().host_readable() && codes.space().host_readable();
  const bool chosen = resources.device().kind != DeviceKind::automatic;
  const Device device =
      on_host && !chosen ? Device::cpu() : resolve_codec_device(recipe(), out, codes.space(), {}, resources);
  dispatch(
      device, [&] { decode_cpu(view(), codes, out, resources); },
      [&](int index) { decode_cuda(tables_, codes, out, index, resources); });
}

void refuse_unused_bits(const MatrixView& codes, const CodeFormat& format, const Resources& resources) {
  const bool parted = format.copies_codewords() || format.adds_codewords();
  const int64_t used = format.parts * format.bits % 8;
  if (!parted || format.has_norm() || used == 0 || codes.rows() == 0) return;
  if (!codes.space().host_readable()) {
    const HostArray<uint8_t> copy(codes.rows() * codes.cols(), "codes", resources);
    const MutableMatrixView here(copy.data(), codes.rows(), codes.cols());
    copy_codes_cuda(codes, here, codes.space().device, resources);
    return refuse_unused_bits(here, format, resources);
  }
  if (counts_only(resources)) return;
  for (int64_t i = 0; i < codes.rows(); ++i) {
    const auto* const code = typed_row<uint8_t>(codes, i);
    if (code[codes.cols() - 1] >> used == 0) continue;
    throw InvalidArgument(
        fmt::format("code {} is no code of {} times {} bits: bits behind the last are set; give codes "
                    "that this quantizer has made",
                    i, format.parts, format.bits));
  }
}

bool same_code(const Codec& a, const Codec& b) {
  const CodeFormat& x = a.format();
  const CodeFormat& y = b.format();
  if (x.kind != y.kind || x.cols != y.cols) return false;
  if (x.stores_values()) return x.dtype == y.dtype;
  const bool same_parts = !x.copies_codewords() || x.parts == y.parts;
  return x.bits == y.bits && x.norm == y.norm && same_parts && a.values() == b.values();
}

}  // namespace kith
