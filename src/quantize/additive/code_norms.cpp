#include "quantize/additive/code_norms.hpp"

#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <vector>

namespace kith {

void decoded_norms(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* norms) {
  const int64_t cols = codec.format.cols;
  const int64_t bytes = codec.format.bytes();
  std::vector<float> vector(static_cast<size_t>(cols));
  for (int64_t i = 0; i < count; ++i) {
    decode_rows_cpu(codec, codes + i * bytes, 1, centre, vector.data());
    norms[i] = static_cast<float>(canonical_squared_norm_cpu(vector.data(), cols));
  }
}

void write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const float* centre) {
  constexpr int64_t kTogether = 64;
  const int64_t bytes = codec.format.bytes();
  float norms[kTogether];
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t here = count - first < kTogether ? count - first : kTogether;
    uint8_t* const some = codes + first * bytes;
    decoded_norms(codec, some, here, centre, norms);
    for (int64_t i = 0; i < here; ++i) set_norm_bits(codec.format, norm_code(codec, norms[i]), some + i * bytes);
  }
}

}  // namespace kith
