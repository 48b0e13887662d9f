// Parts of factory strings that FAISS knows and Kith does not, each answered with the nearest that Kith has.
#pragma once

#include <string>
#include <string_view>

namespace kith {

// A sentence that ends in a factory string for Kith; empty where the part is none of FAISS's.
std::string advice_for_part(std::string_view part);

}  // namespace kith
