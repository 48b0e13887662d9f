// Inverted files of a FAISS file: centres, a code, and lists of codes and ids. They begin behind their tag.
#pragma once

#include "interop/faiss_source.hpp"

#include <string_view>

namespace kith {

bool is_inverted_tag(std::string_view tag);
IndexParts read_faiss_inverted(FaissSource& source, std::string_view tag);

}  // namespace kith
