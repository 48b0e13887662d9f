// What every fuzz target for whole files does: opens bytes as a file of a name, and reads it in more than one way.
#pragma once

#include "fuzz/fuzz_target.hpp"

#include <string>

namespace kith::fuzz {

// Throws std::logic_error where the ways differ, or where an error does not know its file and place.
void read_both_ways(const std::string& name, Input bytes);

}  // namespace kith::fuzz
