// Norms that follow codes: those of the decoded vectors (kernels/codes/code_norm.hpp). On the CPU.
#pragma once

#include "core/name_table.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kith {

// Canonical squared norms, rounded to f32, of `count` decoded vectors, plus a centre unless null.
void decoded_norms(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* norms);

// Writes them behind their codes. Codes of their own (kernels/codes/own_code.hpp) have an estimate without any
// centre in that place at first: call once without a centre and, for codes of residuals, once with it.
void write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const float* centre);

// The trained values behind the codebooks that define the 256 levels of a norm in one byte. CodeNorm::qint8: the
// smallest and the largest norm; levels are the middles of equal steps between them. cqint8: the levels themselves, by
// k-means of the norms.
//
// norm_value_count() is the number of these values.
constexpr int64_t norm_value_count(CodeNorm norm) {
  return norm == CodeNorm::qint8 ? 2 : norm == CodeNorm::cqint8 ? kNormLevels : 0;
}

// The levels from a format's values; empty if it has none.
std::vector<float> norm_levels(const CodeFormat& format, const std::vector<float>& values);

// Trains the values from norms. For cqint8 by Lloyd's iterations over the sorted norms, started from levels at equal
// ranks and, once more, at equal steps; ascending.
std::vector<float> train_norm_values(CodeNorm norm, std::vector<float> norms);

// The names of norms in FAISS's factory strings, after "_N", and in files.

inline constexpr NameTable<CodeNorm, 4> kNormNames{{{{CodeNorm::none, "none"},
                                                     {CodeNorm::float32, "float"},
                                                     {CodeNorm::qint8, "qint8"},
                                                     {CodeNorm::cqint8, "cqint8"}}}};

// "_Ncqint8" and so on; empty for the norm of the decoded vector.
inline std::string norm_suffix(CodeNorm norm) {
  return norm == CodeNorm::decoded ? std::string() : "_N" + std::string(kNormNames.name(norm));
}

}  // namespace kith
