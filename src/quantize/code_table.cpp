#include "quantize/code_table.hpp"

#include "io/container/words.hpp"
#include "quantize/name_part.hpp"

#include <fmt/format.h>

namespace kith {

CodeTable code_table() {
  static const CodeEncoder* const table[] = {kScalarCode, kStoredCode, kProductCode, kLocalSearchCode, kResidualCode};
  return table;
}

CodeRecipe recipe_of(const CodeFormat& format) {
  CodeRecipe recipe;
  recipe.dtype = format.dtype;
  recipe.bits = format.bits;
  recipe.parts = format.parts;
  recipe.norm = format.norm;
  for (const CodeEncoder* const code : code_table()) {
    if (code->kind() != format.kind) continue;
    recipe.code = code;
    break;
  }
  return recipe;
}

CodeRecipe parse_code_name(NamePart& part, CodeTable table) {
  for (const CodeEncoder* const code : table) {
    CodeRecipe recipe;
    recipe.code = code;
    if (!code->parse(part, recipe)) continue;
    part.finish();
    return recipe;
  }
  part.unknown();
}

std::string known_code_names(CodeTable table) {
  std::string names;
  for (const CodeEncoder* const code : table) names += fmt::format("{}{}", names.empty() ? "" : ", ", code->names());
  return names;
}

CodeLine parse_code_line(std::string_view line, CodeTable table) {
  for (const CodeEncoder* const code : table) {
    Words words(line);
    CodeLine parsed;
    parsed.recipe.code = code;
    if (code->parse_text(words.next(), words, parsed.recipe, parsed.cols)) return parsed;
  }
  throw AboutProblem(fmt::format("codes of a kind that is not known: '{}'", line));
}

}  // namespace kith
