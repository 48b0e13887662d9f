// A half-warp for each row, a lane for each lane of the canonical sums; its votes are two bytes of the code. Cost: the
// rows, read once.
#include "kernels/codes/sign_code_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/sign_code.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kCodesPerBlock = kThreads / kCanonicalLanes;

__global__ void __launch_bounds__(kThreads) encode_signs_kernel(CodecView codec, int64_t bytes, const float* rows,
                                                                int64_t stride, int64_t count, uint8_t* codes) {
  const auto lane = static_cast<int>(threadIdx.x % kCanonicalLanes);
  const auto cols = static_cast<int>(codec.format.cols);
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kCodesPerBlock;
  const int64_t mine = static_cast<int64_t>(blockIdx.x) * kCodesPerBlock + threadIdx.x / kCanonicalLanes;
  // Both halves of a warp go round as often.
  for (int64_t start = mine - mine % 2; start < count; start += apart) {
    const int64_t i = start + mine % 2;
    const bool there = i < count;
    const float* const row = rows + (there ? i : 0) * stride;
    uint8_t* const code = codes + (there ? i : 0) * bytes;
    double squares = 0;
    double absolutes = 0;
    for (int first = 0; first < cols; first += kCanonicalLanes) {
      const int c = first + lane;
      const float rest = c < cols ? __fsub_rn(row[c], codec.codewords[c]) : 0.0f;
      const bool above = rest > 0;
      const double wide = static_cast<double>(rest);
      squares = fma(wide, wide, squares);
      absolutes = fma(wide, above ? 1.0 : -1.0, absolutes);
      const uint32_t votes = __ballot_sync(~0u, above) >> (threadIdx.x % 32 / kCanonicalLanes * kCanonicalLanes);
      const int byte = first / 8 + lane;
      if (there && lane < 2 && byte * 8 < cols) code[byte] = static_cast<uint8_t>(votes >> (8 * lane));
    }
    squares = warp_sum<kCanonicalLanes>(squares);
    absolutes = warp_sum<kCanonicalLanes>(absolutes);
    if (!there || lane != 0) continue;
    set_norm_bits(codec.format, norm_code(codec, static_cast<float>(squares)), code);
    set_sign_step(codec.format, step_of_sums(squares, absolutes), code);
  }
}

}  // namespace

void launch_encode_signs(const CodecView& codec, const float* rows, int64_t stride, int64_t count, uint8_t* codes,
                         cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(count, kCodesPerBlock), 1 << 16);
  launch(encode_signs_kernel, Grid::of(blocks, kThreads), stream, codec, codec.format.bytes(), rows, stride, count,
         codes);
}

}  // namespace kith
