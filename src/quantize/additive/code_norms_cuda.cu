// A half-warp per code, a lane per lane of the canonical sum. Cost: one read of each code's codewords.
#include "quantize/additive/code_norms_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/own_code.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kCodesPerBlock = kThreads / kCanonicalLanes;

__global__ void __launch_bounds__(kThreads)
    write_norms_kernel(CodecView codec, int64_t bytes, uint8_t* codes, int64_t count, CodeCentres centres) {
  const auto lane = static_cast<int>(threadIdx.x % kCanonicalLanes);
  const int64_t cols = codec.format.cols;
  const int bits = codec.format.bits;
  const bool own = is_own_code(codec.format);
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kCodesPerBlock;
  const int64_t mine = static_cast<int64_t>(blockIdx.x) * kCodesPerBlock + threadIdx.x / kCanonicalLanes;
  // Both halves of a warp do the same number of iterations.
  for (int64_t start = mine - mine % 2; start < count; start += apart) {
    const int64_t i = start + mine % 2;
    const bool there = i < count;
    uint8_t* const code = codes + (there ? i : 0) * bytes;
    const float* const centre =
        centres.centres == nullptr ? nullptr : centres.centres + (there ? centres.lists[i] : 0) * cols;
    double sum = 0;
    double before = 0;  // without the centre
    for (int64_t c = lane; c < cols; c += kCanonicalLanes) {
      float value = own ? OwnCodeReader(codec, code).value(c)
                        : codec.codewords[sub_code(code, 0, bits) * cols + c];
      for (int64_t p = 1; p < codec.format.parts; ++p) {
        value = __fadd_rn(value, codec.codewords[((p << bits) + sub_code(code, p, bits)) * cols + c]);
      }
      before = fma(static_cast<double>(value), static_cast<double>(value), before);
      if (centre != nullptr) value = __fadd_rn(value, centre[c]);
      sum = fma(static_cast<double>(value), static_cast<double>(value), sum);
    }
    sum = warp_sum<kCanonicalLanes>(sum);
    before = warp_sum<kCanonicalLanes>(before);
    // The first byte of the norm may contain bits of the last book, which were read above.
    __syncwarp();
    if (!there || lane != 0) continue;
    if (own) {
      if (centre == nullptr) before = OwnCodeReader(codec, code).own_square();
      set_norm_bits(codec.format, norm_code(codec, moved_norm(code_norm(codec, code), before, sum)), code);
      continue;
    }
    for (int64_t byte = (codec.format.parts * bits + 7) / 8; byte < bytes; ++byte) code[byte] = 0;
    set_norm_bits(codec.format, norm_code(codec, static_cast<float>(sum)), code);
  }
}

}  // namespace

void launch_write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const CodeCentres& centres,
                             cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(count, kCodesPerBlock), 1 << 16);
  launch(write_norms_kernel, Grid::of(blocks, kThreads), stream, codec, codec.format.bytes(), codes, count, centres);
}

}  // namespace kith
