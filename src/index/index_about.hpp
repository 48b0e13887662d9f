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
#include <vector>

namespace kith {

std::string about_index(const IndexParts& parts);
// The first version of the container that knows every line of it.
uint32_t about_version(const IndexParts& parts);
uint32_t about_version(const QuantizerParts& parts);
uint32_t about_version(const SavedTransforms& parts);
std::string about_codec(const QuantizerParts& parts);
std::string about_transforms(const SavedTransforms& parts);

// Give parts without their arrays; throw AboutProblem.
IndexParts parse_about_index(std::string_view text);
QuantizerParts parse_about_codec(std::string_view text);
SavedTransforms parse_about_transforms(std::string_view text);

}  // namespace kith
