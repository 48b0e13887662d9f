// Parts of an index of every kind, small and the same in every run and on every machine; what they decode to; and
// whether two are the same.
#pragma once

#include "index/index_parts.hpp"

#include <string>
#include <vector>

namespace kith::testing {

std::vector<std::string> kinds_of_parts();
IndexParts make_parts(const std::string& kind);

// One of each code.
std::vector<std::string> kinds_of_codecs();
CodecParts make_codec(const std::string& kind);

// What the lists or the flat rows hold, in the order of rows: slow and obvious.
std::vector<float> decoded(const IndexParts& parts);
// Codes of vectors in the order of rows.
std::vector<float> decoded(const CodecParts& codec, const uint8_t* codes, int64_t count);
// A vector behind the transforms, in doubles.
std::vector<double> transformed(const std::vector<TransformParts>& transforms, const float* vector);

// Fails the test where anything differs.
void expect_same(const IndexParts& a, const IndexParts& b);
void expect_same(const std::vector<TransformParts>& a, const std::vector<TransformParts>& b);

}  // namespace kith::testing
