#include "quantize/additive/packed_codes.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "quantize/additive/additive_encoding_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {

int64_t columns_of_codebooks(int64_t books, int bits, const VectorView<const float>& values) {
  const int64_t words = books << bits;
  if (values.size == 0 || values.size % words != 0) {
    throw InvalidArgument(fmt::format("{} values of codebooks; {} codebooks of {} codewords have a multiple of {}",
                                      values.size, books, int64_t{1} << bits, words));
  }
  const float* const end = values.data + values.size;
  const float* const bad = std::find_if_not(values.data, end, [](float value) { return std::isfinite(value); });
  if (bad != end) {
    throw InvalidArgument(fmt::format("value {} of the codebooks is {}; it must be finite", bad - values.data, *bad));
  }
  return values.size / words;
}

void pack_codes(const uint8_t* whole, const Codebooks& books, const MutableMatrixView& codes) {
  for (int64_t i = 0; i < codes.rows(); ++i) {
    pack_sub_codes(whole + i * books.books, books.books, books.bits, typed_row<uint8_t>(codes, i));
  }
}

void unpack_codes(const MatrixView& codes, const Codebooks& books, uint8_t* whole) {
  for (int64_t i = 0; i < codes.rows(); ++i) {
    unpack_sub_codes(typed_row<uint8_t>(codes, i), books.books, books.bits, whole + i * books.books);
  }
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
  for (int64_t i = 0; i < codes.rows(); ++i) {
    const auto* const code = typed_row<uint8_t>(codes, i);
    if (code[codes.cols() - 1] >> used == 0) continue;
    throw InvalidArgument(
        fmt::format("code {} is no code of {} times {} bits: bits behind the last are set; give codes "
                    "that this quantizer has made",
                    i, format.parts, format.bits));
  }
}

}  // namespace kith
