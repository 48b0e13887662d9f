// Names of FAISS's kinds of indexes, by the four-letter tags in its files.
#pragma once

#include <string>
#include <string_view>

namespace kith {

// "IndexHNSWSQ ('IHNs')", or only an unknown tag.
std::string faiss_kind(std::string_view tag);

}  // namespace kith
