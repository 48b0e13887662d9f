// The codes that there are, for whoever looks for one by a name, by a line of a file or by its format.
#pragma once

#include "quantize/code_encoder.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kith {

using CodeTable = std::span<const CodeEncoder* const>;
CodeTable code_table();

// The usual recipe of a format: additive codes are found by local search.
CodeRecipe recipe_of(const CodeFormat& format);

// The code of a part of a factory string, which is taken whole. InvalidArgument for a name that no code has.
CodeRecipe parse_code_name(NamePart& part, CodeTable table = code_table());
// "SQ8, SQ6, ..., RQmxb".
std::string known_code_names(CodeTable table = code_table());

// The code of a line in a file; AboutProblem for another text.
struct CodeLine {
  CodeRecipe recipe;
  int64_t cols = 0;
};
CodeLine parse_code_line(std::string_view line, CodeTable table = code_table());

}  // namespace kith
