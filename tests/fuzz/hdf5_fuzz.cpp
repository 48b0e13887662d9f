#include "fuzz/fuzz_target.hpp"
#include "fuzz/read_both_ways.hpp"

namespace kith::fuzz {

void hdf5(Input input) { read_both_ways("input.hdf5", input); }

}  // namespace kith::fuzz
