// The norms behind codes, on the CPU: of the vectors that they stand for (kernels/codes/code_norm.hpp).
#pragma once

#include "core/name_table.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kith {

// Canonical squared norms, rounded to f32, of `count` decoded vectors with a centre added, where there is one.
void decoded_norms(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* norms);

// Writes them behind their codes. Sign codes have |r|^2 there at first: to be called once without a centre and, for
// codes of residuals, once with it.
void write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const float* centre);

// The levels that a byte of a norm stands for (CodeNorm::qint8 and cqint8), as trained values hold them, behind the
// codebooks: the least and the largest norm, between which 256 levels lie in the middle of equal steps; or the levels
// themselves, by k-means of the norms.
//
// Their number is norm_value_count.
constexpr int64_t norm_value_count(CodeNorm norm) {
  return norm == CodeNorm::qint8 ? 2 : norm == CodeNorm::cqint8 ? kNormLevels : 0;
}

// The levels of a format's values; none where it has none.
std::vector<float> norm_levels(const CodeFormat& format, const std::vector<float>& values);

// Norms to the values of a kind of them. For cqint8: Lloyd's iterations over the sorted norms, from levels at equal
// ranks and at equal steps in turn; they ascend.
std::vector<float> train_norm_values(CodeNorm norm, std::vector<float> norms);

// The names of norms of codes, as FAISS's factory strings have them behind "_N", and as files do.

inline constexpr NameTable<CodeNorm, 4> kNormNames{{{{CodeNorm::none, "none"},
                                                     {CodeNorm::float32, "float"},
                                                     {CodeNorm::qint8, "qint8"},
                                                     {CodeNorm::cqint8, "cqint8"}}}};

// "_Ncqint8" and so on; nothing for the norm of the decoded vector.
inline std::string norm_suffix(CodeNorm norm) {
  return norm == CodeNorm::decoded ? std::string() : "_N" + std::string(kNormNames.name(norm));
}

}  // namespace kith
