#include "fuzz/fuzz_target.hpp"
#include "fuzz/read_both_ways.hpp"

namespace kith::fuzz {

void idx(Input input) { read_both_ways("input-idx3-ubyte", input); }

}  // namespace kith::fuzz
