// FAISS's kinds of indexes, by the four letters that its files have for them.
#pragma once

#include <string>
#include <string_view>

namespace kith {

// "IndexHNSWSQ ('IHNs')"; the letters alone where they are not known.
std::string faiss_kind(std::string_view tag);

}  // namespace kith
