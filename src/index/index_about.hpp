// The numbers and names of an index's parts as text, one a line: "metric l2". The section "about" of .kith files.
//
// There is one text for given parts. What is read is written again and compared, so that no other is taken. Parameters
// that came with version 2 (prepare, expected_rows, seed, steps) have a line where they are not the default.
#pragma once

#include "index/index_parts.hpp"
#include "io/container/words.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

struct AboutText {
  std::string text;
  uint32_t version = 0;  // the first of the container that knows every line of it
};

// For IndexParts, QuantizerParts and SavedTransforms.
template <typename Parts>
AboutText about_parts(const Parts& parts);
// Gives parts without their arrays; throws AboutProblem.
template <typename Parts>
Parts parse_about(std::string_view text);

}  // namespace kith
