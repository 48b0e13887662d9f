#include "fuzz/fuzz_target.hpp"
#include "fuzz/read_both_ways.hpp"

#include <array>

namespace kith::fuzz {

void vector_file(Input input) {
  static constexpr std::array<const char*, 7> kNames{"input.fbin",  "input.u8bin",  "input.ibin",   "input.npy",
                                                     "input.i8bin", "input.f16bin", "input.bf16bin"};
  if (input.empty()) return;
  read_both_ways(kNames[input[0] % kNames.size()], input.subspan(1));
}

}  // namespace kith::fuzz
