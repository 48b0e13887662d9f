#include "quantize/unused_bits.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "quantize/additive/additive_encoding_cuda.hpp"

#include <fmt/format.h>

namespace kith {

void refuse_unused_bits(const MatrixView& codes, const CodeFormat& format, const Resources& resources) {
  const bool parted = format.kind == CodeKind::product || format.kind == CodeKind::additive;
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
