// Inverted lists of random codes, queries of them, and their search: plainly (decode, canonical keys, sort) and on the GPU
// in every way there is, which must give the same bytes.
#pragma once

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include "ivf/search/ivf_search_cuda.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kith::searched_lists {

struct Lists {
  CodeFormat format;
  KeyKind kind = KeyKind::l2;
  bool residual = false;
  bool has_centres = true;
  std::vector<int64_t> offsets;
  std::vector<uint8_t> codes;
  std::vector<uint32_t> rows;
  std::vector<float> centres;
  std::vector<float> codewords;
  std::vector<float> bases;
  std::vector<float> steps;
  std::vector<float> levels;

  bool by_norm() const { return has_norm_keys(format, kind); }
  int64_t lists() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t count() const { return offsets.back(); }
};

class Numbers {
 public:
  explicit Numbers(uint32_t seed) : random_(seed) {}
  float uniform() { return std::ldexp(static_cast<float>(random_() >> 8), -23) - 1; }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  std::vector<float> floats(int64_t count, float scale = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = uniform() * scale;
    return values;
  }

 private:
  std::mt19937 random_;
};

struct Queries {
  std::vector<float> values;
  std::vector<uint64_t> probes;
  int64_t count = 0;
  int64_t slots = 0;
};

template <typename T>
DeviceBytes on_device(const std::vector<T>& values) {
  return DeviceBytes(values.data(), values.size() * sizeof(T));
}

struct Found {
  std::vector<uint64_t> neighbors;
  uint32_t directly = 0;
};

// How a search is done, which must not change what it finds.
struct Way {
  ProductEngine engine = ProductEngine::automatic;
  int sample_every = 0;  // 0: as planned
  int tables = -1;       // negative: as planned
  bool halves = true;    // kept, of all but product codes
  int multiprocessors = 40;  // two: each block takes many items, one after the other
  bool ranks = false;        // of repeated codes
  ScanTerm term = ScanTerm::none;  // kept for lookups
  bool rows = false;               // bounds are by row, where distances have them
};

Found search_on_gpu(const Lists& lists, const Queries& queries, int64_t k, const std::vector<uint64_t>& kept,
                    int64_t most_bytes, const Way& way);

// Lists of these lengths with random codes; values of about `scale`, centres `spread` times as far.
Lists make_lists(CodeFormat format, KeyKind kind, bool residual, const std::vector<int64_t>& lengths, uint32_t seed,
                 float scale = 1, float spread = 4);

// Queries near one list each; its own list first, then others in a random order.
Queries make_queries(const Lists& lists, int64_t count, int64_t slots, uint32_t seed, float scale = 1);

// In every way. Returns how many queries were searched directly, as planned.
uint32_t expect_same(const Lists& lists, const Queries& queries, int64_t k, const std::vector<uint64_t>& kept = {},
                     int64_t most_bytes = int64_t{1} << 30);

inline CodeFormat product(int64_t cols, int64_t parts, int bits) { return {CodeKind::product, cols, DType::f32, bits, parts}; }
inline CodeFormat scalar(int64_t cols, int bits) { return {CodeKind::scalar, cols, DType::f32, bits, 0}; }
inline CodeFormat stored(int64_t cols, DType dtype) { return {CodeKind::stored, cols, dtype, 8, 0}; }

inline CodeFormat additive(int64_t cols, int64_t books, int bits, CodeNorm norm = CodeNorm::decoded) {
  CodeFormat format{CodeKind::additive, cols, DType::f32, bits, books};
  format.norm = norm;
  return format;
}

std::string name_of(const CodeFormat& format);

inline constexpr KeyKind kKinds[] = {KeyKind::l2, KeyKind::squared_l2, KeyKind::inner_product, KeyKind::cosine};
inline const std::vector<int64_t> kLengths{40, 0, 33, 700, 1, 128, 0, 310, 64, 95, 200, 31};

}  // namespace kith::searched_lists

namespace kith {

class CudaIvfSearchSmall : public OnCuda {};

}  // namespace kith
