// The numbers and names among an index's parts as text, one per line: "metric l2". The section "about" of .kith files.
//
// Given parts have exactly one text: a text that was read is written again and compared, and refused if it differs.
// Parameters that came with version 2 (prepare, expected_rows, seed, steps) have a line unless they are the default.
#pragma once

#include "index/index_parts.hpp"
#include "io/container/words.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

struct AboutText {
  std::string text;
  uint32_t version = 0;  // the first container version that knows all of its lines
};

// Writes the text of IndexParts, QuantizerParts or SavedTransforms.
template <typename Parts>
AboutText about_parts(const Parts& parts);
// Parses parts, without their arrays. AboutProblem for an invalid text.
template <typename Parts>
Parts parse_about(std::string_view text);

}  // namespace kith
