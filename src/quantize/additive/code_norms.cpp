#include "quantize/additive/code_norms.hpp"

#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/codes/own_code.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

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

// Adjusts the estimates that codes of their own hold for the added centre.
static void move_norms(const CodecView& codec, uint8_t* codes, int64_t count, const float* centre) {
  const CodeFormat& format = codec.format;
  std::vector<float> vector(static_cast<size_t>(format.cols));
  const auto square_with = [&](const uint8_t* code, const float* added) {
    decode_rows_cpu(codec, code, 1, added, vector.data());
    return canonical_squared_norm_cpu(vector.data(), format.cols);
  };
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* const code = codes + i * format.bytes();
    const double before = centre == nullptr ? OwnCodeReader(codec, code).own_square() : square_with(code, nullptr);
    const float norm = moved_norm(code_norm(codec, code), before, square_with(code, centre));
    set_norm_bits(format, norm_code(codec, norm), code);
  }
}

void write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const float* centre) {
  if (is_own_code(codec.format)) return move_norms(codec, codes, count, centre);
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

namespace {

constexpr int kMostIterations = 10000;

// As FAISS does, in float64 and rounded once.
float middle_of_step(float least, float largest, int64_t step) {
  const double share = (static_cast<double>(step) + 0.5) / static_cast<double>(kNormLevels);
  return static_cast<float>(share * static_cast<double>(largest - least) + static_cast<double>(least));
}

std::vector<float> levels_of(std::vector<float> norms) {
  const size_t count = norms.size();
  std::vector<double> sums(count + 1, 0.0);
  for (size_t i = 0; i < count; ++i) sums[i + 1] = sums[i] + static_cast<double>(norms[i]);
  const auto levels = static_cast<size_t>(kNormLevels);
  std::vector<float> centres(levels);
  // Half of them by rank, where norms are many, and half at equal steps, where they are few.
  for (size_t i = 0; i < levels; ++i) {
    centres[i] = i % 2 == 0 ? norms[(2 * i + 1) * (count - 1) / (2 * levels)]
                            : middle_of_step(norms.front(), norms.back(), static_cast<int64_t>(i));
  }
  std::sort(centres.begin(), centres.end());
  std::vector<size_t> ends(levels, 0);
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    bool changed = false;
    size_t begin = 0;
    for (size_t i = 0; i < levels; ++i) {
      size_t end = count;
      if (i + 1 < levels) {
        const double middle = (static_cast<double>(centres[i]) + static_cast<double>(centres[i + 1])) / 2;
        const auto after = std::upper_bound(norms.begin() + static_cast<std::ptrdiff_t>(begin), norms.end(), middle,
                                            [](double value, float norm) { return value < static_cast<double>(norm); });
        end = static_cast<size_t>(after - norms.begin());
      }
      changed = changed || ends[i] != end;
      ends[i] = end;
      begin = end;
    }
    if (!changed) break;
    begin = 0;
    for (size_t i = 0; i < levels; ++i) {  // one without norms stays where it is
      if (ends[i] > begin)
        centres[i] = static_cast<float>((sums[ends[i]] - sums[begin]) / static_cast<double>(ends[i] - begin));
      begin = ends[i];
    }
  }
  return centres;
}

}  // namespace

std::vector<float> norm_levels(const CodeFormat& format, const std::vector<float>& values) {
  const auto count = static_cast<size_t>(norm_value_count(format.norm));
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  if (format.norm == CodeNorm::cqint8) return {first, values.end()};
  std::vector<float> levels;
  if (format.norm != CodeNorm::qint8) return levels;
  for (int64_t i = 0; i < kNormLevels; ++i) levels.push_back(middle_of_step(first[0], first[1], i));
  return levels;
}

std::vector<float> train_norm_values(CodeNorm norm, std::vector<float> norms) {
  if (norm_value_count(norm) == 0) return {};
  std::erase_if(norms, [](float value) { return !std::isfinite(value); });
  if (norms.empty()) norms.push_back(0.0f);
  std::sort(norms.begin(), norms.end());
  if (norm == CodeNorm::qint8) return {norms.front(), norms.back()};
  return levels_of(std::move(norms));
}

}  // namespace kith
